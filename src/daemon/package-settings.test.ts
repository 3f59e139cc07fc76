import assert from "node:assert/strict";
import { test } from "node:test";
import type { Config } from "./config.ts";
import { readPackageSettings } from "./package-settings.ts";
import type { MachineParts } from "./setup/machine.ts";

const parts = { npm: null, go: null } as MachineParts;
const settingsFor = (toolEnvironment: Record<string, string>) =>
  readPackageSettings({ toolEnvironment } as unknown as Config, parts);

test("addresses with a user or a token stay with the platform; builds get the others", async () => {
  const plain = {
    npm_config_registry: "https://registry.example.org/npm/",
    PIP_INDEX_URL: "https://pypi.example.org/simple",
    GOPROXY: "https://proxy.example.org,direct",
    GOFLAGS: "-mod=mod",
    no_proxy: "localhost,.example.org",
  };
  const secret = {
    PIP_EXTRA_INDEX_URL: "https://a.example.org/simple https://token@b.example.org/simple",
    "npm_config_@acme:registry": "https://user:pass@npm.example.org/",
    GOSUMDB: "off",
    HTTPS_PROXY: "http://user:p%40ss@proxy.example.org:3128",
    http_proxy: "user:pass@proxy.example.org:3128",
  };
  const { GOSUMDB, ...withheld } = secret;
  const settings = await settingsFor({ ...plain, ...secret });
  const known = new Set([...Object.keys(plain), ...Object.keys(secret)]);
  const ofTest = (env: object) => Object.fromEntries(Object.entries(env).filter(([name]) => known.has(name)));
  assert.deepEqual(ofTest(settings.env), { ...plain, GOSUMDB });
  assert.deepEqual(ofTest(settings.ownEnv), { ...plain, ...secret });
  assert.deepEqual(settings.withheld.filter((name) => known.has(name)).toSorted(), Object.keys(withheld).toSorted());
});
