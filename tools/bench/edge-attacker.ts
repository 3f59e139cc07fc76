import { setPriority } from "node:os";
import { workerData } from "node:worker_threads";
import {
  randomFrom,
  startHostileTraffic,
  startSilentReaders,
  type EdgeAddress,
} from "../../src/ports/edge-attack.suite.ts";

// Attacks until it is terminated, in its own thread, so that the measured client is not delayed; and at a lower priority than that client, with
// which it shares a processor.
setPriority(10);

const { edge, readers } = workerData as { readonly edge: EdgeAddress; readonly readers: number };
startHostileTraffic(edge, "bad.localhost", randomFrom(1));
startSilentReaders(edge, "flood.localhost", readers);
