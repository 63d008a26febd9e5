"""Clusters of Ray and Dask on this machine whose nodes can be lost and replaced. That of Spark is `Standalone`."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from standalone import kill_session, start_session

# Before Ray is imported.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

#: A node of Ray that has died is noticed soon.
HEALTH = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_failure_threshold": 3}

#: What a node of Ray has.
NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}


class RayNodes:
    """Ray with a head, which the driver may be on, and two other nodes."""

    def __init__(self, **health: int) -> None:
        utils: Any = importlib.import_module("ray.cluster_utils")
        head = {**NODE, "include_dashboard": False, "_system_config": {**HEALTH, **health}}
        self.cluster: Any = utils.Cluster(initialize_head=True, head_node_args=head)
        self.address: str = self.cluster.address
        self.replace()

    def names(self) -> list[str]:
        return [node.node_id for node in self.cluster.worker_nodes]

    def lose(self, name: str) -> None:
        [node] = [node for node in self.cluster.worker_nodes if node.node_id == name]
        self.cluster.remove_node(node, allow_graceful=False)

    def replace(self) -> None:
        failures = 0
        while len(self.cluster.worker_nodes) < 2:
            try:
                self.cluster.add_node(**NODE)
            except Exception:
                # Ray waits 30 seconds for a node, which may not suffice on a busy machine.
                failures += 1
                if failures == 3:
                    raise

    def close(self) -> None:
        self.cluster.shutdown()


class DaskNodes:
    """Dask with a scheduler in this process, and two nodes: each is a worker and the nanny that starts it again."""

    def __init__(self, place: Path) -> None:
        distributed: Any = importlib.import_module("distributed")
        self._place = place
        self._started = 0
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        self._cluster = distributed.LocalCluster(n_workers=0, dashboard_address=None)
        self.address: str = self._cluster.scheduler_address
        self._client = distributed.Client(self.address, set_as_default=False)
        self.replace()

    def names(self) -> list[str]:
        """Names that `workers=` of a client accepts."""
        return list(self._nodes)

    def lose(self, name: str) -> None:
        kill_session(self._nodes.pop(name))

    def replace(self) -> None:
        while len(self._nodes) < 2:
            self._started += 1
            name = f"node-{self._started}"
            program = [sys.executable, "-m", "distributed.cli.dask_worker", self.address, "--no-dashboard"]
            options = ["--nthreads=1", "--memory-limit=512MiB", f"--name={name}", f"--local-directory={self._place}"]
            self._nodes[name] = start_session([*program, *options])
        self._client.wait_for_workers(len(self._nodes))

    def close(self) -> None:
        for process in self._nodes.values():
            kill_session(process)
        self._client.close()
        self._cluster.close()
