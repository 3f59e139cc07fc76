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

// Runs in a thread of its own, so that the attack does not hold up the client that is measured. Sends the targets of its applications,
// receives the edge's address, and attacks until it is ended.

// Of this thread alone: the client that is measured shares its processor.
setPriority(10);

const random = randomFrom(1);
const [flood, bad] = [await startChunkFlood(), await startHostileApp(random)];
parentPort?.postMessage([flood.target, bad.target]);
const [edge] = (await once(parentPort as NonNullable<typeof parentPort>, "message")) as [EdgeAddress];
startHostileTraffic(edge, "bad.test", random);
startSilentReaders(edge, "flood.test", (workerData as { readers: number }).readers);
