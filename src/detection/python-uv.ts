import type { Step } from "./plan.ts";

export interface UvProject {
  /** The requirement on `uv` itself, in pip's syntax: `uv`, `uv>=0.9`. */
  readonly uv: string;
  readonly lock: string;
}

/** Returns the steps to install with uv. uv is fetched from the package registry for the build only: the image has only what the lock file names. */
export function uvSteps({ uv }: UvProject, home: string): Step[] {
  const python = `${home}/.venv/bin/python`;
  const pip = ["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar", "off"];
  const shared = { stage: "install", tool: "pip", otherwise: "install_failed" } as const;
  return [
    { ...shared, title: "Fetching uv", args: [python, ...pip, "--target", "/tmp/uv", uv], env: {}, quiet: true },
    {
      ...shared,
      title: "Installing dependencies from uv.lock: uv sync --locked --no-dev",
      args: ["/tmp/uv/bin/uv", "sync", "--locked", "--no-dev", "--no-editable", "--no-progress", "--python", python],
      env: {
        ...{ PYTHONDONTWRITEBYTECODE: "1", UV_PROJECT_ENVIRONMENT: `${home}/.venv`, UV_CACHE_DIR: "/cache/uv" },
        ...{ UV_PYTHON_DOWNLOADS: "never", UV_LINK_MODE: "copy" },
      },
    },
  ];
}

/** Returns whether everything that the lock file names comes from a registry, so that equal lock files yield equal folders. */
export function isFromRegistries(lock: string): boolean {
  const sources = [...lock.matchAll(/^source = \{ (\w+) = "([^"]*)"/gm)];
  return sources.every(([, kind, place]) => kind === "registry" || (kind === "virtual" && place === "."));
}
