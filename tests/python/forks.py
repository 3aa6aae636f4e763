"""Programs of the package without the start of an interpreter.

The tests call the command `nandlab` some 800 times, and a start (the interpreter and the imports) takes longer than
most of the calls. `run` takes the arguments of `subprocess.run`. A server process, which has imported what the command
needs, forks itself for each call: the child has its own arguments, folder, environment and standard streams, and shares
nothing with other calls. What a start imports, its time and its memory are tested with processes of their own.
"""

import array
import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import types

_server = None


def run(arguments, *, cwd=None, env=None, input=None, capture_output=False, text=False, timeout=None, **others):
    """`subprocess.run` for `python -m nandlab ...` and `python -c PROGRAM ...`.

    A call with an option that is not named here starts a process.
    """
    if others:
        options = {"cwd": cwd, "env": env, "input": input, "capture_output": capture_output, "text": text}
        return subprocess.run(arguments, timeout=timeout, **options, **others)
    python, option, program, *rest = map(os.fspath, arguments)
    assert python == sys.executable and (option == "-c" or (option, program) == ("-m", "nandlab")), arguments
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write((input.encode() if text else input) if input is not None else b"")
        given.seek(0)
        call = {
            "program": program if option == "-c" else None,
            "arguments": rest,
            "cwd": os.fspath(cwd or os.getcwd()),
            "env": dict(os.environ if env is None else env),
        }
        streams = [s.fileno() if capture_output else i for i, s in enumerate((given, out, err))]
        status = _ask(call, [given.fileno(), *streams[1:]], timeout, arguments)
        printed = []
        for stream in (out, err):
            stream.seek(0)
            printed.append(stream.read())
    if text:
        printed = [p.decode().replace("\r\n", "\n").replace("\r", "\n") for p in printed]
    return subprocess.CompletedProcess(list(arguments), status, *(printed if capture_output else (None, None)))


def _ask(call, streams, timeout, arguments):
    global _server
    if _server is None or _server[0] != os.getpid():
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        process = subprocess.Popen([sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()])
        theirs.close()
        _server = os.getpid(), ours, process
        atexit.register(_end)
    ours = _server[1]
    message = json.dumps(call).encode("utf-8", "surrogateescape")
    ours.sendall(len(message).to_bytes(4, "big"))
    ours.sendmsg([message[:1]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))])
    ours.sendall(message[1:])
    pid = int.from_bytes(_exactly(ours, 4), "big", signed=True)
    late = not select.select([ours], [], [], timeout)[0]
    if late:
        os.kill(pid, signal.SIGKILL)
    status = int.from_bytes(_exactly(ours, 4), "big", signed=True)
    if late:
        raise subprocess.TimeoutExpired(list(arguments), timeout)
    return status


def _end():
    _, ours, process = _server
    ours.close()
    process.wait()


def _exactly(peer, count):
    got = b""
    while len(got) < count:
        more = peer.recv(count - len(got))
        if not more:
            raise EOFError
        got += more
    return got


def _serve(peer):
    """Forks for each call, and answers with the number of the process and then with its exit status."""

    while True:
        try:
            length = int.from_bytes(_exactly(peer, 4), "big")
        except EOFError:
            return
        first, extra, *_ = peer.recvmsg(1, socket.CMSG_SPACE(3 * array.array("i").itemsize))
        streams = array.array("i")
        streams.frombytes(extra[0][2])
        call = json.loads((first + _exactly(peer, length - 1)).decode("utf-8", "surrogateescape"))
        child = os.fork()
        if child == 0:
            peer.close()
            _become(call, list(streams))
        for stream in streams:
            os.close(stream)
        peer.sendall(child.to_bytes(4, "big", signed=True))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        peer.sendall(status.to_bytes(4, "big", signed=True))


def _become(call, streams):
    """Runs the program of `call` in this process, and ends it."""
    status = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(call["cwd"])
        os.environ.clear()
        os.environ.update(call["env"])
        # The path of the folder of this file was first.
        sys.path[0] = call["cwd"]
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        if call["program"] is None:
            from nandlab import __main__ as command
            from nandlab.cli import main as start

            sys.argv = [command.__file__, *call["arguments"]]
            start()
        else:
            sys.argv = ["-c", *call["arguments"]]
            exec(compile(call["program"], "<string>", "exec"), vars(main))
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            sys.stderr.write(end.code + "\n")
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
