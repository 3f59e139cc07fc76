import { cargoTarget } from "../detection/rust-plan.ts";

/** Variables that the project may override. */
export const stepEnv = { NODE_ENV: "production", TERM: "dumb", NO_COLOR: "1" };

/** Variables that the project cannot override: cache folders, no prompts, no telemetry. */
export const toolEnv = {
  npm_config_cache: "/cache/npm",
  npm_config_update_notifier: "false",
  npm_config_color: "false",
  YARN_CACHE_FOLDER: "/cache/yarn",
  YARN_GLOBAL_FOLDER: "/cache/yarn-modern",
  YARN_NODE_LINKER: "node-modules",
  YARN_ENABLE_TELEMETRY: "0",
  NEXT_TELEMETRY_DISABLED: "1",
  NUXT_TELEMETRY_DISABLED: "1",
  ASTRO_TELEMETRY_DISABLED: "1",
  PIP_CACHE_DIR: "/cache/pip",
  PIP_DISABLE_PIP_VERSION_CHECK: "1",
  GOCACHE: "/cache/go-build",
  GOMODCACHE: "/cache/go-mod",
  CARGO_HOME: "/cache/cargo",
  CARGO_TARGET_DIR: cargoTarget,
};
