import { offersOciRuntime, readEngineFacts } from "../containers/engine-facts.ts";
import { openDockerApi } from "../kit/docker-api.ts";
import type { Config } from "./config.ts";
import { StartRefused } from "./start-refused.ts";

/**
 * Throws `StartRefused` if applications would not start under BERTH_DOCKER_RUNTIME, or would start under another runtime. An engine that
 * does not answer is not an error here: the runtime's description reports it, and later a runtime that the engine does not have.
 */
export async function requireOciRuntime(
  { dockerRuntime: name, dockerSocket }: Pick<Config, "dockerRuntime" | "dockerSocket">,
  kind: "docker" | "swarm",
): Promise<void> {
  if (name === null) return;
  if (kind === "swarm")
    throw new StartRefused(
      `BERTH_DOCKER_RUNTIME=${name} does not work with BERTH_RUNTIME=swarm: a service of a swarm cannot choose its runtime, so replicas would run under the engines' default. Leave BERTH_DOCKER_RUNTIME out, or take swarm out of BERTH_RUNTIME.`,
    );
  const facts = await readEngineFacts(openDockerApi(dockerSocket)).catch(() => null);
  if (facts === null || offersOciRuntime(facts, name)) return;
  throw new StartRefused(
    `BERTH_DOCKER_RUNTIME=${name}: the Docker engine at ${dockerSocket} has no such runtime, only ${facts.ociRuntimes.join(", ")}. Add it to "runtimes" in the engine's daemon.json and restart the engine, or leave the setting out for the engine's default.`,
  );
}
