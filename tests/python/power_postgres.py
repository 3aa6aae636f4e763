"""PostgreSQL as the workload and the check of power tests; the server runs as its ordinary user.

power_postgres.py setup
power_postgres.py insert ROWS [SETTING=VALUE]...
power_postgres.py check
"""

import os
import shutil
import subprocess
import sys
from glob import glob
from pathlib import Path

#: The programs of the newest version that is installed.
BIN = Path(max(glob("/usr/lib/postgresql/*/bin"), default="/nonexistent"))
AS_USER = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


def run(program, *words, **options):
    """Stdout of a program of PostgreSQL, which has to succeed."""
    command = [*AS_USER, BIN / program, *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    if done.returncode:
        sys.exit(f"{program}: {done.stdout}{done.stderr}")
    return done.stdout


def start(data, *settings):
    """Start the server, with its socket in the folder of the data."""
    options = " ".join(f"-c {setting}" for setting in settings)
    sockets = f"-c listen_addresses= -c unix_socket_directories={data.absolute()}"
    command = [
        *AS_USER,
        BIN / "pg_ctl",
        "-D",
        data,
        "-l",
        data / "log",
        "-w",
        "-t",
        "60",
        "-o",
        f"{sockets} {options}",
        "start",
    ]
    # The server keeps the pipes of its parent open.
    done = subprocess.run(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.exit((data / "log").read_text()[-1500:])


def sql(data, text):
    """The answer to a query."""
    return run("psql", "-h", data.absolute(), "-d", "postgres", "-qtAc", text)


def stop(data, mode="fast"):
    """Stop the server."""
    run("pg_ctl", "-D", data, "-m", mode, "-w", "stop")


def main(mode, *words):
    """Run one of the commands in the present folder."""
    data = Path("pg")
    if mode == "setup":
        data.mkdir()
        shutil.chown(data, "postgres", "postgres")
        run("initdb", "-D", data, "-A", "trust", "--no-sync")
        start(data)
        sql(data, "create table t(a int primary key, b text); create extension amcheck")
        stop(data)
    elif mode == "insert":
        start(data, "checkpoint_timeout=30s", *words[1:])
        with open(os.environ["NANDLAB_ACK"], "w", buffering=1) as ack:
            for row in range(int(words[0])):
                sql(
                    data,
                    f"insert into t values({row}, repeat('text', {row % 50}));"
                    "update t set b = b || 'x' where a % 5 = 0",
                )
                ack.write(f"{row}\n")
                if row % 10 == 9:
                    sql(data, "checkpoint")
        stop(data, "immediate")
    else:
        # The server has gone with its machine, and another process may have its number.
        for left in [data / "postmaster.pid", *data.glob(".s.PGSQL*")]:
            left.unlink(missing_ok=True)
        start(data)
        sql(data, "select bt_index_check('t_pkey', true)")
        rows = set(sql(data, "select a from t").split())
        stop(data)
        missing = [line for line in Path(os.environ["NANDLAB_ACKED"]).read_text().split() if line not in rows]
        if missing:
            sys.exit(f"lost transactions {missing[:5]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
