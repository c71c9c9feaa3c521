#!/usr/bin/env python3
"""The runs of @NAME@ as tasks of Ray.

  python3 run.py                              on this machine
  python3 run.py --address auto --gpus 0.25   on the cluster that Ray runs on, four runs to a card

A run that is complete ends at once, and one that was broken off goes on from its last checkpoint, so this may be started again at any
time; a task whose machine was lost is started again elsewhere. All machines need this folder and the folder of the runs under the same
path. Code 0: all runs are complete; 3: some have saved before their end; 1: some failed.
"""
import argparse
import os
import subprocess
import sys

import ray

FOLDER = @FOLDER_JSON@
WORKING = @WORKING_JSON@


def carry_out(number, command, cpus):
    environment = dict(os.environ)
    environment.setdefault("RAYON_NUM_THREADS", str(max(1, int(cpus))))
    with open(os.path.join(FOLDER, "logs", f"{number}.log"), "a") as log:
        run = subprocess.run(["bash", "-c", "exec " + command], cwd=WORKING, env=environment, stdout=log, stderr=log)
    return run.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", help="a cluster of Ray's that runs already; `auto` finds it")
    parser.add_argument("--cpus", type=float, default=2, help="processors of each run (default: 2)")
    parser.add_argument("--gpus", type=float, default=0, help="cards of each run, or a share of one (default: 0)")
    given = parser.parse_args()
    with open(os.path.join(FOLDER, "jobs.txt")) as file:
        commands = file.read().splitlines()
    ray.init(address=given.address, log_to_driver=False)
    task = ray.remote(num_cpus=given.cpus, num_gpus=given.gpus, max_retries=10)(carry_out)
    waiting = {task.remote(number, command, given.cpus): number for number, command in enumerate(commands)}
    codes = set()
    while waiting:
        (done, *_), _ = ray.wait(list(waiting))
        number = waiting.pop(done)
        try:
            code = ray.get(done)
        except ray.exceptions.RayError as error:
            print(f"run {number} was lost: {error}", file=sys.stderr, flush=True)
            code = 1
        codes.add(code)
        word = {0: "is complete", 3: "has saved before its end"}.get(code, f"failed with code {code}")
        print(f"run {number} {word}; {len(waiting)} are left", flush=True)
    return 0 if codes <= {0} else 3 if codes <= {0, 3} else 1


if __name__ == "__main__":
    sys.exit(main())
