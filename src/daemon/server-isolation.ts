import type { MissingPart, Runtime } from "../ports/runtime.ts";

/** Returns which isolation is missing when projects' databases share one server. */
export function missingOnServer(openDatabases: readonly string[]): MissingPart[] {
  const open = openDatabases.join(", ");
  return [
    {
      part: "database_servers",
      effect:
        "The databases of all projects are on one PostgreSQL server: each has roles, a database and 20 connections of its own, but no memory, processors or disk of its own, and its role sees the names of the others.",
      remedy: "Unset BERTH_PG_URL, and each project gets a server of its own on this machine.",
    },
    ...(open === ""
      ? []
      : [
          {
            part: "databases_of_others",
            effect: `Applications can log in to databases on the server that do not belong to Berth: ${open}.`,
            remedy: "REVOKE CONNECT ON DATABASE … FROM PUBLIC for each of them, or give Berth a server of its own.",
          },
        ]),
  ];
}

/** Returns the runtime with these parts added to what its description lists as missing. */
export function withMissing(runtime: Runtime, missing: () => readonly MissingPart[]): Runtime {
  const describe: Runtime["describe"] = async () => {
    const described = await runtime.describe();
    return { ...described, missing: [...described.missing, ...missing()] };
  };
  return new Proxy(runtime, {
    get(target, name) {
      if (name === "describe") return describe;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}
