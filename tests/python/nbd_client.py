"""A client of a live drive for tests: one request at a time over a Unix socket (NBD, simple replies)."""

import socket
import struct

_READ, _WRITE, _FLUSH, _TRIM, _ZEROES = 0, 1, 3, 4, 6
_FUA = 1


class Client:
    """A connection to a drive, by the name of an export."""

    def __init__(self, path, name=""):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(60)
        self.socket.connect(str(path))
        magic, option_magic, _flags = struct.unpack(">8s8sH", self._receive(18))
        assert (magic, option_magic) == (b"NBDMAGIC", b"IHAVEOPT")
        # Fixed newstyle without zeros; the option EXPORT_NAME.
        self.socket.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, len(name)) + name.encode())
        #: Size of the drive in bytes.
        self.size, _flags = struct.unpack(">QH", self._receive(10))
        self._cookie = 0

    def _receive(self, length):
        parts = b""
        while len(parts) < length:
            part = self.socket.recv(length - len(parts))
            if not part:
                raise ConnectionResetError("the drive has ended the connection")
            parts += part
        return parts

    def _request(self, kind, offset=0, length=0, payload=b"", fua=False):
        self._cookie += 1
        head = struct.pack(">IHHQQI", 0x25609513, _FUA if fua else 0, kind, self._cookie, offset, length)
        self.socket.sendall(head + payload)
        magic, error, cookie = struct.unpack(">IIQ", self._receive(16))
        assert (magic, cookie) == (0x67446698, self._cookie)
        if error:
            raise OSError(error, "the drive reports an error")
        return self._receive(length) if kind == _READ else b""

    def read(self, offset, length):
        """Bytes of the drive."""
        return self._request(_READ, offset, length)

    def write(self, offset, payload, fua=False):
        """Write bytes, durable at the end with `fua`."""
        self._request(_WRITE, offset, len(payload), payload, fua)

    def flush(self):
        """Make completed writes durable."""
        self._request(_FLUSH)

    def trim(self, offset, length):
        """Deallocate bytes."""
        self._request(_TRIM, offset, length)

    def zero(self, offset, length):
        """Make bytes zero."""
        self._request(_ZEROES, offset, length)

    def close(self):
        """End the connection."""
        self.socket.close()
