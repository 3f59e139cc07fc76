import type { Unable } from "../../ports/tenant-database.ts";

/** Thrown in the adapter to end a call with an outcome. */
export class Stopped extends Error {
  readonly why: Unable;
  constructor(why: Unable) {
    super(why.outcome);
    this.name = "Stopped";
    this.why = why;
  }
}

/** The parts of PostgreSQL's errors that are used. Their texts may contain values, so they are never passed on. */
export interface ServerError {
  readonly code?: string;
  readonly constraint?: string;
  readonly column?: string;
  readonly where?: string;
}

/** Returns the outcome of an error during login; undefined when it came neither from the server nor from its socket. */
export function whyNoLogin(error: ServerError & Error): Unable | undefined {
  const { code = "" } = error;
  // The database does not exist, the role may not enter it, or it accepts no connections.
  if (["3D000", "42501", "55000"].includes(code)) return { outcome: "missing" };
  if (code === "53300") return unavailable("The application uses all connections of its database.");
  if (/^(?:08|28|57P)/.test(code) || isConnectionFault(error)) return unavailable("The database does not answer.");
  return undefined;
}

/** Returns the outcome of an error during work; undefined when it came neither from the server nor from its socket. */
export function whyNot(error: ServerError & Error): Unable | undefined {
  const { code = "" } = error;
  if (isConnectionFault(error) || /^(?:08|57P)/.test(code)) return unavailable("The connection to the database broke.");
  if (!/^[0-9A-Z]{5}$/.test(code)) return undefined;
  return (
    exact[code]?.(error) ?? constraintBroken(error) ?? conflict(`PostgreSQL refused the statement (SQLSTATE ${code}).`)
  );
}

export const tooMuchMemory: Unable = {
  outcome: "conflict",
  problem: "The statement needs more memory than one statement may use.",
  hint: "Read fewer rows at a time, and let PostgreSQL sort or group them instead of collecting them in one value.",
};

// SQLSTATE codes: PostgreSQL, appendix A.
const exact: Readonly<Record<string, (error: ServerError) => Unable>> = {
  "57014": () => ({ outcome: "timeout" }),
  "55P03": () => unavailable("Another session holds a lock on the table."),
  "40001": () => unavailable("Another session changed the same rows."),
  "40P01": () => unavailable("Another session changed the same rows."),
  "53200": () => tooMuchMemory,
  "53400": () => conflict("The statement needs more temporary space than a database may use."),
  "42P01": nameless,
  "3F000": nameless,
  "42883": nameless,
  "42704": nameless,
  "42501": () => conflict("The database's permissions or row-level security forbid this."),
  "0A000": () => conflict("PostgreSQL cannot do this with a table of this kind or with such rules."),
  "25006": () => conflict("Reading this table runs a function that writes. The table browser reads only."),
  "44000": () => conflict("The row does not fit the view's check option."),
  "42809": () => conflict("Rows of this kind of table cannot be changed."),
  "55000": () => conflict("Rows of this kind of table cannot be changed."),
  "428C9": () => ({
    outcome: "invalid",
    field: "values",
    problem: "has a value for a column that the database always generates",
  }),
  P0001: () => conflict("A function or trigger of the database refused the change."),
};

/** Converts PostgreSQL's error about a user's own statement to a message that includes its text: the user may read what it can contain. */
export function refuseStatement(error: ServerError & Error & { readonly position?: string }): never {
  const { code = "", message, position } = error;
  if (code === "25006" || code === "25001")
    throw new Stopped(
      conflict("The statement writes, and only reading is possible here. `berth db psql` runs statements that write."),
    );
  if (!/^(?:0A|2[0-9A-Z]|3[0-9DF]|42|44|54|P0|XX)/.test(code)) throw error;
  const place = position === undefined ? "" : `, at character ${position}`;
  const problem = `${quotedText(message)} (SQLSTATE ${code}${place})`;
  throw new Stopped({ outcome: "invalid", field: "sql", problem });
}

function quotedText(message: string): string {
  if (message.includes("multiple commands")) return "holds more than one statement";
  return message.replace(/\p{Cc}/gu, " ").slice(0, 300);
}

function constraintBroken({ code = "", constraint, column }: ServerError): Unable | undefined {
  const named = constraint === undefined ? "" : ` ${quoted(constraint)}`;
  switch (code) {
    case "23502":
      return conflict(column === undefined ? "A value is required." : `The column ${quoted(column)} needs a value.`);
    case "23503":
      return conflict(`The foreign key${named} forbids this: a row would refer to a row that does not exist.`);
    case "23505":
      return conflict(`The unique constraint${named} forbids a second such row.`);
    case "23514":
      return conflict(`The check${named} refuses the row.`);
    case "23P01":
      return conflict(`The exclusion constraint${named} refuses the row.`);
    default:
      return code.startsWith("23") ? conflict(`The constraint${named} refuses the row.`) : undefined;
  }
}

// Inside a function, the owner wrote the wrong name; otherwise the table was dropped after it was looked up.
function nameless({ where }: ServerError): Unable {
  if (where === undefined) return { outcome: "missing" };
  return {
    outcome: "conflict",
    problem: "A function of the database uses a name that is not found.",
    hint: "The browser works with an empty search_path: name things with their schema, or set search_path for the function.",
  };
}

function isConnectionFault(error: ServerError & Error): boolean {
  return (
    /^(?:ECONN|ENOENT$|EPIPE$|EACCES$|ETIMEDOUT$)/.test(error.code ?? "") ||
    /^Connection terminated|^timeout expired|^timeout exceeded/.test(error.message)
  );
}

/** Cleans and truncates a name for a message: the owner chose it, so it may be long or contain anything. */
function quoted(name: string): string {
  return `"${name.replace(/\p{Cc}/gu, " ").slice(0, 63)}"`;
}

function conflict(problem: string): Unable {
  return { outcome: "conflict", problem };
}

function unavailable(problem: string): Unable {
  return { outcome: "unavailable", problem };
}
