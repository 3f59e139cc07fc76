import { run } from "../kit/exec.ts";
import type { CliContext } from "./context.ts";

const openers: Partial<Record<NodeJS.Platform, string>> = { darwin: "open", linux: "xdg-open" };

/** Opens a URL in the user's browser. Failing is not an error: the URL has been printed. */
export async function browse({ environment }: Pick<CliContext, "environment">, url: string): Promise<void> {
  const opener = openers[process.platform];
  if (opener === undefined || !/^https?:\/\//.test(url)) return;
  await run({ file: opener, args: [url] }, { env: environment.childEnvironment, timeoutMs: 5000 }).catch(() => {});
}
