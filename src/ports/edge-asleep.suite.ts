import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "../../test/support/eventually.ts";
import { plain, route, text, type Stage } from "./edge-stage.suite.ts";
import type { Target } from "./edge.ts";

/** Rules about applications that are asleep. */
export function sleeping(stage: Stage): void {
  const asleep = (hostname: string) => ({ ...route(hostname, []), state: "asleep" as const, ...plain });

  test("requests to an application that is asleep wait until it serves, with their bodies, and ask for it once", async () => {
    const app = await stage.app(async (req, res) => res.end(`${req.method} ${await text(req)}`));
    const woken: string[] = [];
    let open: (target: Target) => void = () => {};
    const started = new Promise<Target>((resolve) => (open = resolve));
    const edge = await stage.edge();
    await stage.serveRoutes([asleep("asleep.test"), route("awake.test", [app])]);
    await edge.wakeBy(async (project) => {
      woken.push(project);
      await stage.serveRoutes([route("asleep.test", [await started]), route("awake.test", [app])]);
    });
    const body = "x".repeat(100_000);
    const asked = [
      stage.ask({ host: "asleep.test", method: "POST", body }),
      stage.ask({ host: "ASLEEP.test." }),
      stage.ask({ host: "asleep.test", method: "PUT", headers: { "transfer-encoding": "chunked" }, body }),
    ];
    await eventually(() => woken.length > 0, "the edge has asked");
    assert.equal((await stage.ask({ host: "awake.test" })).status, 200, "others do not wait");
    open(app);
    const answers = await Promise.all(asked);
    assert.deepEqual(
      answers.map(({ body: said }) => said),
      [`POST ${body}`, "GET ", `PUT ${body}`],
    );
    assert.deepEqual(woken, ["prj_asleep.test"]);
  });

  test("a request is answered with a page, and later ones ask again, when the application does not start", async () => {
    const edge = await stage.edge();
    await stage.serveRoutes([asleep("stays.test")]);
    let asked = 0;
    await edge.wakeBy(async () => {
      asked += 1;
      if (asked > 1) throw new Error("it cannot start");
    });
    for (const times of [1, 2]) {
      const answer = await stage.ask({ host: "stays.test" });
      assert.deepEqual([answer.status, answer.headers["x-berth-error"], asked], [503, "asleep", times]);
    }
  });

  test("the platform's own requests wake nothing", async () => {
    const edge = await stage.edge();
    await stage.serveRoutes([asleep("probed.test")]);
    let asked = 0;
    await edge.wakeBy(async () => void (asked += 1));
    const { headers = {} } = (await edge.entrance()) ?? {};
    assert.equal((await stage.ask({ host: "probed.test", headers: { ...headers } })).status, 503);
    assert.equal(asked, 0);
  });
}
