import assert from "node:assert/strict";
import { test } from "node:test";
import type { Answer } from "../../src/contract/client.ts";
import { drawCases } from "../support/draw-cases.ts";
import { observeShifts } from "./dashboard-page.ts";
import { lookRight, pages } from "./dashboard-pages.ts";
import { at, faults, heading, page, platform, press, skip, visitorWith } from "./dashboard-stage.ts";

// What a new organization and a new project show.

test(
  "pages with no data look right and do not shift: an empty organization, a project without any deployment",
  { skip },
  async () => {
    const { body: made } = await platform.call<{ owner_token: string }>("POST", "/v1/orgs", {
      slug: "hollow",
      name: "Hollow",
    });
    const visitor = await visitorWith(made.owner_token);
    await visitor.getByText("Deploy your first application").waitFor();
    await visitor.addInitScript(observeShifts);
    const isOfOperator = (path: string) => path.startsWith("/operator");
    const ofOrganization = Object.values(pages).filter((path) => !path.startsWith("/projects/") && !isOfOperator(path));
    await lookRight(visitor, drawCases(ofOrganization, 2));
    await visitor.context().close();
    await platform.call("POST", "/v1/projects", { slug: "blank", name: "Blank" });
    // Pages of one build, backup, job, run or table need one.
    const ofProject = Object.values(pages).filter((path) => /^\/projects\/demo(?:\/[a-z]+)?$/.test(path));
    await lookRight(
      page,
      drawCases(ofProject, 2).map((path) => path.replace("demo", "blank")),
    );
    await platform.call("DELETE", "/v1/projects/blank?purge=true");
  },
);

test(
  "a project begins with an image only where the runtime has images, and its name comes from the image",
  { skip },
  async () => {
    const option = page.getByLabel("Begin with").locator("option", { hasText: "A container image" });
    await page.goto(at("/"));
    await press("New project");
    await page.getByLabel("Begin with").waitFor();
    assert.equal(await option.count(), 0);
    // This platform runs processes, so the test fakes the answers of one that runs containers.
    await page.route(/\/v1\/me$/, async (route) => {
      const me = (await (await route.fetch()).json()) as Answer<"me.get">;
      return route.fulfill({ json: { ...me, platform: { ...me.platform, runtime: "docker" } } });
    });
    const sent: unknown[] = [];
    await page.route(/\/v1\/projects\/shop\/deployments$/, async (route) => {
      sent.push(route.request().postDataJSON());
      return route.fulfill({ status: 202, json: { build_id: "bld_absent" } });
    });
    await page.goto(at("/"));
    await press("New project");
    await page.getByLabel("Begin with").selectOption("image");
    await page.getByLabel("Image", { exact: true }).fill("ghcr.io/acme/shop:1.4");
    assert.equal(await page.getByRole("textbox", { name: "Slug" }).inputValue(), "shop");
    await faults.during([/^404 \/v1\/builds\/bld_absent/], async (haveCome) => {
      await page.getByRole("dialog").getByRole("button", { name: "Create", exact: true }).click();
      await page.waitForURL(at("/projects/shop/builds/bld_absent"));
      await haveCome();
    });
    assert.deepEqual(sent, [{ image: "ghcr.io/acme/shop:1.4" }]);
    await page.unrouteAll({ behavior: "wait" });
    await page.goto(at("/"));
    await heading("Overview").waitFor();
    await platform.call("DELETE", "/v1/projects/shop?purge=true");
  },
);
