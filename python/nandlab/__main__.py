"""`python -m nandlab` is the command `nandlab`."""

from nandlab.cli import main

if __name__ == "__main__":
    main()
