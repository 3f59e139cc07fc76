import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { eventually } from "../../../test/support/eventually.ts";
import { builderDouble } from "../../../test/support/port-doubles.ts";
import { createDiskRoom } from "./disk-room.ts";

const never = new AbortController().signal;
const gib = 1024 ** 3;

/** The room on a disk that is short of space until the builds that fill it have ended. */
function roomWith(taken: Readonly<Record<string, number | null>>) {
  const disk = { is_low: false, is_short: false, is_full: false };
  const dataDisk = {
    observe: async () => ({ total_bytes: 100 * gib, available_bytes: gib, ...disk }),
    keepReserve: async () => "kept" as const,
    probeWrite: async () => {},
  };
  const builder = builderDouble({ takenBytes: async (id) => taken[id] ?? null });
  return { disk, room: createDiskRoom({ dataDisk, builder }) };
}

test("of the builds on a disk that runs short the one that took most ends, and its neighbours go on", async () => {
  const { disk, room } = roomWith({ small: 1000, large: 3 * gib, middle: gib });
  const builds = ["small", "large", "middle"].map((id) => room.enter(id, never));
  const [small, large, middle] = builds as [(typeof builds)[0], (typeof builds)[0], (typeof builds)[0]];
  disk.is_short = true;
  await eventually(() => large.signal.aborted, "the largest has to end");
  assert.match(large.shortage()?.summary ?? "", /this one took the most: 3072 MiB/);
  // The task removes the build's files. Until then it ends no other build for space.
  large.leave();
  disk.is_short = false;
  for (const build of [small, middle]) {
    assert.deepEqual([build.signal.aborted, build.shortage()], [false, undefined]);
    build.leave();
  }
});

test("a build that is not measured counts as more than a small one; where the disk is full, the next one ends soon, but none that takes little", async () => {
  const { disk, room } = roomWith({ little: 1000, small: 100 * 1024 ** 2, unknown: null });
  const [little, small, unknown] = [
    room.enter("little", never),
    room.enter("small", never),
    room.enter("unknown", never),
  ];
  Object.assign(disk, { is_short: true, is_full: true });
  await eventually(() => unknown.signal.aborted, "the build that is not measured has to end");
  assert.equal(small.signal.aborted, false);
  assert.equal(unknown.shortage()?.code, "storage_full");
  await eventually(() => small.signal.aborted, "the next one has to end");
  // The files of the two are being deleted. To end a build that takes nothing would gain nothing.
  await setTimeout(1500);
  assert.equal(little.signal.aborted, false);
  for (const build of [little, small, unknown]) build.leave();
});
