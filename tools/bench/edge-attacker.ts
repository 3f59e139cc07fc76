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

/** What the thread is started with. */
export interface AttackPlan {
  /** The number of clients that do not read. */
  readonly readers: number;
  /** Names of applications that already run; left out: it starts its own. */
  readonly hosts?: Hosts;
}

interface Hosts {
  readonly bad: string;
  readonly flood: string;
}

// Runs in a thread of its own, so that the attack does not hold up the client that is measured. Sends the targets of its applications,
// receives the edge's address, and attacks until it is ended.

// Of this thread alone: the client that is measured shares its processor.
setPriority(10);

const random = randomFrom(1);
const { readers, hosts } = workerData as AttackPlan;
const apps = hosts === undefined ? [await startChunkFlood(), await startHostileApp(random)] : [];
parentPort?.postMessage(apps.map(({ target }) => target));
const [edge] = (await once(parentPort as NonNullable<typeof parentPort>, "message")) as [EdgeAddress];
const { bad, flood } = hosts ?? { bad: "bad.test", flood: "flood.test" };
startHostileTraffic(edge, bad, random);
startSilentReaders(edge, flood, readers);
