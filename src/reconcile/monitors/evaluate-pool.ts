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
    const hint = "`berth machines` says why; `berth machines use` and `berth machines join` bring some.";
    return [overall("fail", "No machine takes replicas: none can start.", hint), ...bad];
  }
  const drained = machines.length - fit - bad.length;
  const ok = `${counted(fit, "machine")} can take replicas${drained > 0 ? `, ${drained} drained` : ""}.`;
  return listed(bad, { ok, bad: "Machines that take no replicas" });
}

function troubleOf({ state, replicas, guarded, takes_replicas }: Machine): Omit<Finding, "subject"> | null {
  if (state === "down")
    return {
      status: "fail",
      detail: `The machine is down: its engine does not answer the swarm. Replicas that do not answer start elsewhere; ${replicas} are still counted here.`,
      hint: "Start the machine and its engine again, or remove it with `berth machines remove` when it is lost for good.",
    };
  if (state !== "ready")
    return {
      status: "warn",
      detail: `The swarm says that the machine is ${state}. It gets no new replicas; those that run stay.`,
      hint: "It passes when managers have elected a leader; otherwise look at the engine's log there.",
    };
  if (guarded || !takes_replicas) return null;
  return {
    status: "warn",
    detail: "The guard does not run there, so the machine gets no replicas.",
    hint: "Install nftables there; `docker service ps` of the service whose name ends in -guard says what it lacks.",
  };
}
