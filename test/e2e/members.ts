import { rmSync } from "node:fs";
import { eventually } from "../support/eventually.ts";
import { askReady, launch, layGround, type Place } from "./platform.ts";
import { killProcesses, processesNaming } from "./processes.ts";

/** A control plane beside the primary of a platform: `berthd start --roles=…` on the same database. */
export interface Member {
  readonly api: string;
  readonly edgePort: number;
  readonly dataDir: string;
  readonly pid: number;
  /** Starts the control plane again after `kill`. */
  begin(): Promise<void>;
  /** Kills the control plane, as a crash does; its edge keeps running. */
  kill(): Promise<void>;
  /** Ends the control plane and its processes, and deletes its data. */
  end(): Promise<void>;
}

/** Starts a member on this machine or in another machine's network; both must reach the address in BERTH_LISTEN. */
export async function startMember(
  roles: string,
  settings: Record<string, string>,
  { enter = [] }: Pick<Place, "enter"> = {},
): Promise<Member> {
  const { env, api, ports, dataDir } = await layGround({ ...settings, BERTH_ROLES: roles });
  let child: ReturnType<typeof launch>;
  let over: Promise<void>;
  const begin = async () => {
    let output = "";
    child = launch(env, { enter });
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
    over = new Promise((resolve) => child.once("close", () => resolve()));
    await eventually(() => (child.exitCode === null ? askReady(api) : Promise.reject(new Error(output))), "ready");
  };
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    await over;
  };
  await begin();
  return {
    ...{ api, edgePort: ports.edge, dataDir, begin },
    get pid() {
      return child.pid as number;
    },
    kill: () => end("SIGKILL"),
    async end() {
      await end("SIGTERM");
      killProcesses(processesNaming(dataDir));
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
    },
  };
}
