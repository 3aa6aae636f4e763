"""Power tests: power cuts under a program, and which promise each of them broke."""
