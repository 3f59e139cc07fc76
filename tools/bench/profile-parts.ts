import { Session } from "node:inspector/promises";

/**
 * Returns where a process spends its busy time, as fractions of 1: by package for foreign code, by folder for Berth's own, largest first.
 */
export async function profileFor(milliseconds: number): Promise<[string, number][]> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.start");
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
  const { profile } = await session.post("Profiler.stop");
  session.disconnect();
  const names = new Map(profile.nodes.map(({ id, callFrame }) => [id, partOf(callFrame)]));
  const times = new Map<string, number>();
  profile.samples?.forEach((id, index) => {
    const name = names.get(id) ?? "";
    if (name !== "") times.set(name, (times.get(name) ?? 0) + (profile.timeDeltas?.[index] ?? 0));
  });
  const busy = [...times.values()].reduce((sum, each) => sum + each, 0);
  return [...times].map(([name, time]): [string, number] => [name, time / busy]).sort(([, a], [, b]) => b - a);
}

function partOf({ url, functionName }: { url: string; functionName: string }): string {
  if (["(idle)", "(root)"].includes(functionName)) return "";
  if (functionName === "(garbage collector)") return "garbage collection";
  if (functionName === "(program)" || url === "") return "native code and system calls";
  if (url.startsWith("node:")) return "Node.js";
  return /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? `src/${/\/src\/([^/]+)/.exec(url)?.[1] ?? "…"}`;
}
