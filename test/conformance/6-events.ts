import assert from "node:assert/strict";
import { it } from "node:test";
import { eventually, type Json, type Subject } from "./subject.ts";

/** Part 6 of the specification. */
export function events(subject: () => Subject): void {
  it("Recent changes are readable through the activity route, values never included", async () => {
    await subject().expect(204, "PUT", "/v1/projects/shop/env/NOTED", { body: { value: "another-planted-value" } });
    subject().secrets.add("another-planted-value");
    const { body } = await subject().expect(200, "GET", "/v1/activity?limit=500");
    // Events of the platform itself come in between.
    const newest = body.activity.find(({ actor }: Json) => actor.name === "owner");
    assert.deepEqual([newest.action, newest.project, newest.target], ["env.set", "shop", "NOTED"]);
    const actions = new Set(body.activity.map(({ action }: Json) => action));
    for (const action of [
      "project.created",
      "project.deleted",
      "project.undeleted",
      "token.created",
      "domain.attached",
      "cron.set",
      "database.created",
    ])
      assert.ok(actions.has(action), action);
  });

  it("Recent changes are readable through the project timeline route, newest first", async () => {
    const { body } = await subject().expect(200, "GET", "/v1/projects/shop/timeline?limit=500");
    const entries = body.timeline as Json[];
    assert.ok(entries.every(({ project }) => project === "shop"));
    const actions = new Set(entries.map(({ action }) => action));
    for (const action of ["deployment.activated", "deployment.failed", "deployment.rollback_requested", "env.set"])
      assert.ok(actions.has(action), `${action} is not among ${[...actions].join(", ")}`);
    const times = entries.map(({ at }) => at);
    assert.ok(
      times.every((time, index) => index === 0 || time <= times[index - 1]),
      "the timeline is not sorted newest first",
    );
  });

  it("The stream of changes continues from a cursor", async () => {
    const { next_cursor: after } = (await subject().expect(200, "GET", "/v1/activity/changes")).body;
    await subject().expect(204, "PUT", "/v1/projects/shop/env/NOTED", { body: { value: "another-planted-value" } });
    await eventually("the changes contain the new one", async () => {
      const { body } = await subject().expect(200, "GET", `/v1/activity/changes?after=${after}`);
      return body.changes.length > 0;
    });
  });

  it("The timeline continues after a cursor without a gap", async () => {
    const page = async (query: string): Promise<{ ids: string[]; next_cursor: string }> => {
      const { body } = await subject().expect(200, "GET", `/v1/projects/shop/timeline?${query}`);
      return { ids: body.timeline.map(({ id }: Json) => id), next_cursor: body.next_cursor };
    };
    const first = await page("limit=3");
    const second = await page(`limit=3&cursor=${encodeURIComponent(first.next_cursor)}`);
    // The variable set above is being deployed, so newer entries can arrive between the requests.
    const { ids } = await page("limit=500");
    const from = ids.indexOf(first.ids[0] ?? "");
    assert.deepEqual([...first.ids, ...second.ids], ids.slice(from, from + 6));
  });
}
