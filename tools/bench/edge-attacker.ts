import { once } from "node:events";
import { setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import {
  randomFrom,
  startChunkFlood,
  startHostileApp,
  startHostileTraffic,
  startSilentReaders,
  type EdgeAddress,
} from "../../src/ports/edge-attack.suite.ts";

/** The thread's input. */
export interface AttackPlan {
  /** The number of clients that do not read. */
  readonly readers: number;
  /** Names of applications that already run; by default the thread starts its own. */
  readonly hosts?: Hosts;
}

interface Hosts {
  readonly bad: string;
  readonly flood: string;
}

// Runs in its own thread, so that the attack does not delay the measured client. Sends the targets of its applications, receives the edge's
// address, and attacks until it is terminated.

// Lowers only this thread's priority, because the measured client shares its processor.
setPriority(10);

const random = randomFrom(1);
const { readers, hosts } = workerData as AttackPlan;
const apps = hosts === undefined ? [await startChunkFlood(), await startHostileApp(random)] : [];
parentPort?.postMessage(apps.map(({ target }) => target));
const [edge] = (await once(parentPort as NonNullable<typeof parentPort>, "message")) as [EdgeAddress];
const { bad, flood } = hosts ?? { bad: "bad.test", flood: "flood.test" };
startHostileTraffic(edge, bad, random);
startSilentReaders(edge, flood, readers);
