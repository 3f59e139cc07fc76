import type { Finding } from "../../features/status/status.ts";
import { counted } from "../../kit/counted.ts";
import type { PooledMachine } from "../../ports/machines.ts";
import { listed, overall } from "./check.ts";

type Machine = Pick<PooledMachine, "name" | "address" | "state" | "takes_replicas" | "guarded" | "replicas">;

/** Evaluates the machines that replicas run on. A drained machine is not a problem: its operator wants it so. */
export function evaluatePool(machines: readonly Machine[]): readonly Finding[] {
  const bad = machines.flatMap((machine): Finding[] => {
    const trouble = troubleOf(machine);
    // Machine names may repeat, so the subject includes the address.
    return trouble === null ? [] : [{ subject: `${machine.name} (${machine.address})`, ...trouble }];
  });
  const fit = machines.filter((machine) => machine.takes_replicas && troubleOf(machine) === null).length;
  if (fit === 0) {
    const hint =
      "`berth machines` shows why. `berth machines use` takes a drained machine back, `berth machines join` adds another.";
    return [overall("fail", "No machine takes replicas, so no replica can start.", hint), ...bad];
  }
  const drained = machines.length - fit - bad.length;
  const ok = `${counted(fit, "machine")} can take replicas${drained > 0 ? `, ${drained} drained` : ""}.`;
  return listed(bad, { ok, bad: "Machines that take no replicas" });
}

function troubleOf({ state, replicas, guarded, takes_replicas }: Machine): Omit<Finding, "subject"> | null {
  if (state === "down")
    return {
      status: "fail",
      detail: `The machine is down: its Docker engine does not respond to the swarm. Its replicas that do not respond start on other machines; ${replicas} are still counted here.`,
      hint: "Start the machine and its engine again, or remove it with `berth machines remove` if it is lost for good.",
    };
  if (state !== "ready")
    return {
      status: "warn",
      detail: `The swarm reports the machine as ${state}. It gets no new replicas; running ones stay.`,
      hint: "This ends once the managers have elected a leader; if it lasts, read the Docker engine's log on the machine.",
    };
  if (guarded || !takes_replicas) return null;
  return {
    status: "warn",
    detail: "The guard (Berth's firewall service) does not run on this machine, so it gets no replicas.",
    hint: "Install nftables on the machine; `docker service ps` of the service whose name ends in -guard shows the error.",
  };
}
