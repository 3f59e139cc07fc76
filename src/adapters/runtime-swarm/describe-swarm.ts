import type { MissingPart, RuntimeDescription } from "../../ports/runtime.ts";
import { readMembership } from "./swarm-api.ts";
import type { SwarmContext } from "./settings.ts";

interface EngineVersion {
  readonly ApiVersion: string;
}

/** What services get of what containers of this engine do, and what they lack. */
export async function describeSwarm({ api }: SwarmContext, local: RuntimeDescription): Promise<RuntimeDescription> {
  const lacks = new Set(["live_restore", "private_app_folder"]);
  const missing = local.missing.filter(({ part }) => part !== "live_restore");
  const isolation = local.isolation.filter((part) => !lacks.has(part));
  if (missing.some(({ part }) => part === "engine")) return { ...local, name: "swarm" };
  const [{ isManager }, keepsPrivileges] = await Promise.all([readMembership(api), mayGainPrivileges(api)]);
  return {
    name: "swarm",
    network: "engine",
    isolation: isolation.filter((part) => part !== "no_new_privileges" || !keepsPrivileges),
    missing: [
      ...missing,
      ...(isManager ? [] : [noSwarm]),
      ...(keepsPrivileges ? [newPrivileges] : []),
      ...(missing.some(({ part }) => part === "private_app_folder") ? [] : [noFolder]),
    ],
  };
}

/** Services ask for it from version 1.46 of the API on; before that only the engine's own setting gives it. */
async function mayGainPrivileges(api: SwarmContext["api"]): Promise<boolean> {
  const [{ ApiVersion: version }, { SecurityOptions: options }] = await Promise.all([
    api.call<EngineVersion>({ path: "/version" }),
    api.call<{ readonly SecurityOptions: readonly string[] | null }>({ path: "/info" }),
  ]);
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isAsked = major > 1 || minor >= 46;
  return !isAsked && !(options ?? []).some((option) => option.includes("no-new-privileges"));
}

const noSwarm: MissingPart = {
  part: "swarm",
  effect: "The Docker engine of this machine manages no swarm: replicas without storage can't be started.",
  remedy: "Run `docker swarm init --advertise-addr ADDRESS` with the address that the other machines reach",
};

const newPrivileges: MissingPart = {
  part: "no_new_privileges",
  effect: "A set-user-id program of an image may give an application root's user number, without any of root's rights.",
  remedy: 'Put `"no-new-privileges": true` into /etc/docker/daemon.json of every machine, or use Docker 27 or later',
};

const noFolder: MissingPart = {
  part: "private_app_folder",
  effect: "Replicas on several machines cannot write to their own folder, only to /tmp and their home.",
  remedy: "Let the application write below /tmp, or keep the project's storage, which binds it to one machine",
};
