import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DockerRefused, type DockerApi, type DockerCall } from "../../kit/docker-api.ts";
import { joinManagers } from "./managers.ts";
import { createRecall } from "./recall.ts";

type Reply = (call: DockerCall) => Promise<unknown>;

/** An engine with these replies, and the paths that it was asked for. */
function engine(reply: Reply) {
  const asked: string[] = [];
  const call: Reply = async (given) => {
    asked.push(given.path);
    return reply(given);
  };
  return { asked, api: { call } as unknown as DockerApi };
}

const refusing = (status: number): Reply => {
  return async (call) => {
    throw new DockerRefused(call, status, "no");
  };
};
const closed: Reply = async () => {
  throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
};
const silent: Reply = ({ signal }) =>
  new Promise((_, reject) => signal?.addEventListener("abort", () => reject(new Error("aborted"))));
const answering: Reply = async () => "answer";

describe("the managers of a swarm", () => {
  for (const [what, reply] of Object.entries({
    "whose engine is down": closed,
    "that has no leader": refusing(500),
    "that is in no swarm": refusing(503),
    "that gives no answer": silent,
  }))
    it(`are asked after one ${what}, and then first`, async () => {
      const [own, other] = [engine(reply), engine(answering)];
      const managers = joinManagers([own.api, other.api]);
      assert.equal(await managers.call({ path: "/nodes" }), "answer");
      assert.equal(await managers.call({ path: "/tasks" }), "answer");
      assert.deepEqual([own.asked, other.asked], [["/nodes"], ["/nodes", "/tasks"]]);
    });
  it("answer once when the swarm itself refuses", async () => {
    const [own, other] = [engine(refusing(404)), engine(answering)];
    await assert.rejects(joinManagers([own.api, other.api]).call({ path: "/services/x" }), { status: 404 });
    assert.deepEqual(other.asked, []);
  });
  it("fail together with what the last one says", async () => {
    const managers = joinManagers([engine(closed).api, engine(refusing(500)).api]);
    await assert.rejects(managers.call({ path: "/nodes" }), { status: 500 });
  });
  it("get a change from the next one only if the engine accepts no connection", async () => {
    const body = { method: "POST", path: "/services/create" } as const;
    const other = engine(answering);
    assert.equal(await joinManagers([engine(closed).api, other.api]).call(body), "answer");
    await assert.rejects(joinManagers([engine(refusing(500)).api, other.api]).call(body), { status: 500 });
    assert.equal(other.asked.length, 1);
  });
  it("are asked again if one of them alone gives no answer in time, which a lost leader causes", async () => {
    const replies = [silent, answering];
    const own = engine((call) => (replies.shift() ?? answering)(call));
    assert.equal(await joinManagers([own.api]).call({ path: "/nodes" }), "answer");
    assert.equal(own.asked.length, 2);
  });
});

describe("what is known of this machine", () => {
  it("is what was read last while its engine is down, and no other fault is hidden", async () => {
    const recall = createRecall();
    const failing = async (): Promise<string> => closed({ path: "" }) as Promise<string>;
    await assert.rejects(recall("image", failing), { code: "ECONNREFUSED" });
    assert.equal(await recall("image", async () => "known"), "known");
    assert.equal(await recall("image", failing), "known");
    await assert.rejects(
      recall("image", () => refusing(404)({ path: "" }) as Promise<string>),
      { status: 404 },
    );
    await assert.rejects(recall("another image", failing), { code: "ECONNREFUSED" });
  });
});
