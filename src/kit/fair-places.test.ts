import assert from "node:assert/strict";
import { test } from "node:test";
import { createFairPlaces } from "./fair-places.ts";

const never = new AbortController().signal;

/** Places, and a list of the current holders. */
function openPlaces(limits: { all: number; perOwner: number; waitingPerOwner?: number }) {
  const places = createFairPlaces({ waitingPerOwner: 100, ...limits });
  const inside = new Map<string, () => void>();
  const take = (owner: string, key: string, signal = never) =>
    places.take({ owner, key }, signal).then((leave) => {
      if (leave !== null) inside.set(key, leave);
      return leave !== null;
    });
  /** Returns the holders once everyone who can enter has entered. */
  const seen = async () => {
    await new Promise(setImmediate);
    return [...inside.keys()];
  };
  const leave = (key: string) => {
    inside.get(key)?.();
    inside.delete(key);
  };
  return { take, seen, leave };
}

test("a key has one place at a time, in the order of the calls", async () => {
  const { take, seen, leave } = openPlaces({ all: 4, perOwner: 2 });
  void take("acme", "shop");
  const second = take("acme", "shop");
  assert.deepEqual(await seen(), ["shop"]);
  leave("shop");
  assert.equal(await second, true);
});

test("an owner never holds every place, however many of its own wait", async () => {
  const { take, seen, leave } = openPlaces({ all: 3, perOwner: 2 });
  for (const key of ["a1", "a2", "a3", "a4"]) void take("acme", key);
  void take("globex", "g1");
  assert.deepEqual(await seen(), ["a1", "a2", "g1"]);
  leave("a1");
  assert.deepEqual(await seen(), ["a2", "g1", "a3"]);
});

test("the owner with the fewest places gets the next one", async () => {
  const { take, seen, leave } = openPlaces({ all: 2, perOwner: 2 });
  for (const key of ["a1", "a2", "a3"]) void take("acme", key);
  void take("globex", "g1");
  leave((await seen())[0] ?? "");
  assert.deepEqual(await seen(), ["a2", "g1"]);
});

test("whatever gives up waiting keeps no place, and a place is given back once", async () => {
  const { take, seen, leave } = openPlaces({ all: 1, perOwner: 1 });
  void take("acme", "a1");
  const gone = new AbortController();
  const late = take("globex", "g1", gone.signal);
  void take("initech", "i1");
  gone.abort(new Error("gone"));
  await assert.rejects(late, /gone/);
  leave("a1");
  leave("a1");
  assert.deepEqual(await seen(), ["i1"]);
  await assert.rejects(take("globex", "g1", gone.signal), /gone/);
});

test("an owner has a limited number waiting, and the others wait beside it", async () => {
  const { take, seen } = openPlaces({ all: 2, perOwner: 1, waitingPerOwner: 1 });
  void take("acme", "a1");
  void take("acme", "a2");
  assert.equal(await take("acme", "a3"), false);
  assert.equal(await take("globex", "g1"), true);
  assert.deepEqual(await seen(), ["a1", "g1"]);
});
