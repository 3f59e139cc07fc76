import { readFile } from "node:fs/promises";
import type { MissingPart, RuntimeDescription } from "../../ports/runtime.ts";
import { readContainer } from "../../containers/containers.ts";
import type { Guard } from "./guard.ts";
import { readMembership } from "./swarm-api.ts";
import type { SwarmContext } from "./settings.ts";

interface EngineVersion {
  readonly ApiVersion: string;
}

/** Describes the isolation of services, derived from that of this engine's containers, and what is missing. */
export async function describeSwarm(
  { api }: SwarmContext,
  guard: Guard,
  local: RuntimeDescription,
): Promise<RuntimeDescription> {
  const lacks = new Set(["live_restore", "private_app_folder"]);
  const missing = local.missing.filter(({ part }) => part !== "live_restore");
  const isolation = local.isolation.filter((part) => !lacks.has(part));
  if (missing.some(({ part }) => part === "engine")) return { ...local, name: "swarm" };
  const { isManager, nodeId } = await readMembership(api);
  const mayGain = isManager ? await mayGainPrivileges(api, () => guardStatus(api, guard, nodeId)) : true;
  return {
    name: "swarm",
    network: "engine",
    isolation: isolation.filter((part) => part !== "no_new_privileges" || !mayGain),
    missing: [
      ...missing,
      ...(isManager ? [] : [noSwarm]),
      ...(mayGain ? [newPrivileges] : []),
      ...(missing.some(({ part }) => part === "private_app_folder") ? [] : [noFolder]),
    ],
  };
}

/** Returns whether programs may gain privileges. Services request no-new-privileges from API 1.46 on; before, only the engine's setting does. */
async function mayGainPrivileges(api: SwarmContext["api"], status: () => Promise<string>): Promise<boolean> {
  const { ApiVersion: version } = await api.call<EngineVersion>({ path: "/version" });
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return !(major > 1 || minor >= 46) && !/^NoNewPrivs:\s+1$/m.test(await status());
}

/** Returns /proc/<pid>/status of the guard on this machine, because the engine does not report its setting. Empty if unknown. */
async function guardStatus(api: SwarmContext["api"], guard: Guard, machine: string): Promise<string> {
  // `machines()` creates the guard if the swarm has none; until it runs, the setting is unknown.
  try {
    await guard.machines();
    const container = await guard.containerOn(machine);
    if (container === undefined) return "";
    const { State: state } = await readContainer(api, container);
    return await readFile(`/proc/${state.Pid}/status`, "utf8");
  } catch {
    return "";
  }
}

const noSwarm: MissingPart = {
  part: "swarm",
  effect: "The Docker engine of this machine manages no swarm: replicas without storage can't be started.",
  remedy: "Run `docker swarm init --advertise-addr ADDRESS` with the address that the other machines reach",
};

const newPrivileges: MissingPart = {
  part: "no_new_privileges",
  effect:
    "A set-user-id program in an image may switch the application to root's user id, but without any of root's capabilities.",
  remedy: 'Put `"no-new-privileges": true` into /etc/docker/daemon.json of every machine, or use Docker 27 or later',
};

const noFolder: MissingPart = {
  part: "private_app_folder",
  effect: "Replicas on several machines cannot write to their own folder, only to /tmp and their home.",
  remedy: "Let the application write below /tmp, or keep the project's storage, which binds it to one machine",
};
