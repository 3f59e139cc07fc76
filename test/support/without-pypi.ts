import { run, systemPath } from "../../src/kit/exec.ts";

/** Why tests of Python applications are skipped; null where they run. */
export async function withoutPypi(): Promise<string | null> {
  const python = await run(
    { file: "python3", args: ["-c", "import venv, ensurepip"] },
    { env: { PATH: systemPath } },
  ).catch(() => null);
  if (python?.exitCode !== 0) return "SKIPPED: no python3 with venv";
  const index = process.env["PIP_INDEX_URL"] ?? "https://pypi.org/simple";
  const answer = await fetch(`${index.replace(/\/$/, "")}/flask/`, { signal: AbortSignal.timeout(20_000) }).catch(
    () => null,
  );
  await answer?.body?.cancel();
  return answer?.ok === true ? null : "SKIPPED: the Python package index cannot be reached";
}
