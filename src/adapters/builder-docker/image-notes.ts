import type { Procfile } from "../../detection/procfile.ts";
import type { BuildCommands } from "../../ports/builder.ts";
import { quoted } from "../../kit/quoted.ts";
import type { EngineImage } from "./move-image.ts";

/** TCP ports on which images usually speak something other than plain HTTP: mail, databases, queues, TLS, debuggers. */
const otherProtocols = new Set([
  ...[21, 22, 23, 25, 53, 110, 143, 389, 443, 465, 587, 636, 993, 995, 1025, 1433, 1521, 1883, 2525, 3306, 5432, 5671],
  ...[5672, 6379, 8443, 8883, 9042, 9092, 9229, 9300, 11211, 27017, 33060],
]);

/** Returns the TCP ports of EXPOSE, those that probably speak HTTP first, else the lowest first. */
function exposedPorts({ Config }: EngineImage): readonly number[] {
  const names = Object.keys(Config.ExposedPorts ?? {}).filter((port) => !/\/(?:udp|sctp)$/.test(port));
  const rank = (port: number) => (otherProtocols.has(port) ? 1 : 0);
  return names.map((name) => Number.parseInt(name, 10)).toSorted((a, b) => rank(a) - rank(b) || a - b);
}

/** Returns the port of EXPOSE that gets the requests. */
export const exposedPort = (image: EngineImage): number | undefined => exposedPorts(image)[0];

/** Describes, for the push, what of an image's settings applies here and what does not. */
export function describeImage(
  image: EngineImage,
  { web, release, others }: Procfile,
  commands: BuildCommands,
): string[] {
  const { Config } = image;
  const entrypoint = Config.Entrypoint ?? [];
  const own = [web, release, ...Object.values(others)].some((command) => command !== null);
  const check = Config.Healthcheck?.Test ?? [];
  const user = (Config.User ?? "").split(":")[0] ?? "";
  const volumes = Object.keys(Config.Volumes ?? {}).filter((path) => path !== commands.storage);
  return [
    ...portNotes(image, commands.port),
    ...(own && entrypoint.length > 0
      ? [
          `ENTRYPOINT ${entrypoint.map(quoted).join(" ")} does not run before the commands of the Procfile and berth.json: name it in a command that needs it`,
        ]
      : []),
    ...(check.length > 0 && check[0] !== "NONE"
      ? ["HEALTHCHECK decides when a replica is healthy, unless the project or berth.json sets a health path"]
      : []),
    ...(["", "0", "root"].includes(user) ? [] : [`USER ${user}: the process runs under the project's own user id`]),
    ...volumes.map(
      (path) =>
        `VOLUME ${path}: what is written there is deleted with each replica, also by the next deploy. To keep it: "storage": ${JSON.stringify(path)} in berth.json`,
    ),
  ];
}

function portNotes(image: EngineImage, set: number | undefined): string[] {
  const [port, ...others] = exposedPorts(image);
  if (port === undefined) return [];
  if (set !== undefined)
    return set === port
      ? []
      : [`EXPOSE ${port} is not used: requests go to port ${set}, as the project or berth.json says`];
  const rest = others.length === 0 ? "" : ` (EXPOSE also names ${others.join(", ")})`;
  return [`EXPOSE: requests go to port ${port}${rest}, unless the project or berth.json sets another`];
}
