import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { provideImage } from "../../tools/images/provide-image.ts";
import { createApp, startPlatform, type TestPlatform } from "../e2e/platform.ts";
import { startTestEngine, withoutDocker, type TestEngine } from "../support/docker-engine.ts";
import { drawCases } from "../support/draw-cases.ts";
import { dockerfileApps } from "./dockerfile-apps.ts";

// Drawn with other container files: each application needs its own parent image, and the first build of an image takes minutes.

const drawn = drawCases(Object.entries(dockerfileApps), 1);
const tagOf = (name: string) => ({ repo: `parent/${name}`, tag: "latest" });

describe(
  "Dockerfiles from guides are pushed, built, and served at the port that they expose",
  {
    skip: withoutDocker,
  },
  () => {
    let engine: TestEngine;
    let platform: TestPlatform;
    before(async () => {
      engine = await startTestEngine();
      const names = new Set(drawn.flatMap(([, { parents }]) => parents));
      const shared = [...names].map((name) => `${tagOf(name).repo}:${tagOf(name).tag}`);
      platform = await startPlatform({
        ...{ BERTH_RUNTIME: "docker", BERTH_DOCKER_SOCKET: engine.socket, BERTH_SHARED_IMAGES: shared.join(",") },
      });
    });
    after(async () => {
      await platform?.destroy();
      await engine?.close();
    });

    for (const [slug, { parents, files }] of drawn)
      it(slug, async () => {
        for (const name of parents) {
          const made = await provideImage(engine.socket, name);
          await engine.api.call({ method: "POST", path: `/images/${made}/tag`, query: tagOf(name) });
        }
        const app = await createApp(platform, slug, files);
        const pushed = await app.push();
        assert.equal(pushed.exitCode, 0, pushed.stderr);
        assert.match((await platform.visit(slug)).body, new RegExp(`Hello from ${slug}`));
      });
  },
);
