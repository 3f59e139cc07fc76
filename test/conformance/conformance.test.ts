// In every run: it calls every route, and pushes, rolls back, makes databases, backs them up and restores them.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { limits } from "./8-limits.ts";
import { versioning } from "./9-versioning.ts";
import { endpoints } from "./4-endpoints.ts";
import { errorAnswers } from "./7-errors.ts";
import { access } from "./5-authentication.ts";
import { events } from "./6-events.ts";
import { fields } from "./2-resources.ts";
import { purpose } from "./1-purpose.ts";
import { transitions } from "./3-states.ts";
import { startSubject, type Subject } from "./subject.ts";

// All parts share one platform and organization, as the users of an organization do.
describe("the specification", () => {
  let subject: Subject;
  before(async () => {
    subject = await startSubject();
  });
  after(() => subject?.destroy());
  const get = () => subject;

  describe("1. What the service does", () => purpose(get));
  describe("2. Resources and their fields", () => fields(get));
  describe("3. States and transitions", () => transitions(get));
  describe("4. Endpoints", () => endpoints(get));
  describe("5. Authentication", () => access(get));
  describe("6. Events", () => events(get));
  describe("7. Errors", () => errorAnswers(get));
  describe("8. Limits", () => limits(get));
  describe("9. Versioning", () => versioning(get));

  it("every route was called, and succeeded", async () => {
    const { body } = await subject.expect(200, "GET", "/v1/capabilities");
    const succeeded = new Set([...subject.seen].filter((one) => / 2\d\d$/.test(one)).map((one) => one.split(" ")[0]));
    assert.deepEqual(
      body.routes.map(({ name }: { name: string }) => name).filter((name: string) => !succeeded.has(name)),
      // A move needs a second runtime; test/e2e/docker.test.ts moves a project there and back.
      // Only a swarm can add and drain machines; test/e2e/swarm.test.ts covers that.
      // Upgrades need an installed release; test/e2e/upgrade.test.ts has one.
      // An account at a provider needs one; src/http/provider-sign-in.test.ts has issuers.
      [
        "me.unlink_identity",
        "platform.upgrade",
        "platform.move",
        "platform.join",
        "platform.drain",
        "platform.dismiss",
      ],
    );
  });
});
