"""The exported names of the package; each name is imported at its first use."""

from .measure import CodecResult, Curve, Point, codec

__all__ = ["CodecResult", "Curve", "Point", "codec"]
