import assert from "node:assert/strict";
import { test } from "node:test";
import { BodyRelay } from "./body-relay.ts";
import { ProjectLoad } from "./project-load.ts";

const oneByte = Buffer.from("x");

/** Reads a body of one-byte chunks until the relay pauses it; resolves with the number of chunks in one turn of the event loop. */
async function bringChunks(load: ProjectLoad, wanted: number): Promise<number> {
  let [paused, brought] = [false, 0];
  const relay = new BodyRelay({ pause: () => (paused = true), resume: () => (paused = false) }, load);
  relay.sendTo({ write: () => true, once: () => undefined });
  for (; brought < wanted && !paused; brought += 1) relay.take(oneByte);
  // The relay passes on the chunks of one event a microtask later.
  await Promise.resolve();
  relay.stop();
  return brought;
}

test("all bodies of a project share what the edge reads in one turn", async () => {
  const load = new ProjectLoad(() => 1000);
  let total = 0;
  for (let body = 0; body < 40; body += 1) total += await bringChunks(load, 10_000);
  assert.ok(total < 4000, `${total} chunks in one turn`);
  assert.equal(await bringChunks(new ProjectLoad(() => 1000), 200), 200, "another project's body is not paused");
});

test("a body of few chunks is not paused when its project has used up its share", async () => {
  const load = new ProjectLoad(() => 1000);
  for (let body = 0; body < 10; body += 1) await bringChunks(load, 10_000);
  assert.equal(await bringChunks(load, 60), 60);
});
