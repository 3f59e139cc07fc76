/** A setting: its environment variable, its default and its meaning. */
export interface Setting<T> {
  readonly name: `BERTH_${string}`;
  /** The default, as the documentation shows it. */
  readonly standard: string;
  readonly meaning: string;
  /** Parses the variable's text, which is undefined if it is not set. Throws a sentence about what is wrong. */
  readonly read: (text: string | undefined) => T;
}

export function setting<T>(name: Setting<T>["name"], standard: string, read: Setting<T>["read"]) {
  return { means: (meaning: string): Setting<T> => ({ name, standard, meaning, read }) };
}

/** Returns a value for a message about what is wrong with it, unless it could hold a login: whoever reads logs must not learn that. */
export function shown(given: string | undefined): string {
  return /@|:\/\/|password/i.test(given ?? "") ? "what it is set to" : `"${given}"`;
}

export function text(name: Setting<string>["name"], standard: string) {
  return setting(name, standard, (given) => given ?? standard);
}

export function optional(name: Setting<string>["name"]) {
  return setting<string | null>(name, "", (given) => given ?? null);
}

/** A setting of several values, separated by commas. `fault` returns what is wrong with one of them, or undefined. */
export function list(name: Setting<unknown>["name"], fault: (value: string) => string | undefined) {
  return setting<readonly string[]>(name, "", (given) => {
    const values = (given ?? "")
      .split(",")
      .map((value) => value.trim())
      .filter((value) => value !== "");
    for (const [at, value] of values.entries()) {
      const wrong = fault(value);
      // A comma may be part of a password.
      const named = shown(given) === `"${given}"` ? value : `value ${at + 1}`;
      if (wrong !== undefined) throw new Error(`${name}: ${named} ${wrong}.`);
    }
    return values;
  });
}

export function whole(name: Setting<number>["name"], standard: number, [least, most]: readonly [number, number]) {
  return setting(name, String(standard), (given) => {
    const value = given === undefined ? standard : Number(given);
    if (!Number.isInteger(value) || value < least || value > most)
      throw new Error(`${name} must be a whole number from ${least} to ${most}, not ${shown(given)}.`);
    return value;
  });
}

export function flag(name: Setting<boolean>["name"], standard: boolean) {
  return setting(name, standard ? "1" : "0", (given) => {
    if (given === undefined) return standard;
    if (["1", "true", "yes", "on"].includes(given.toLowerCase())) return true;
    if (["0", "false", "no", "off"].includes(given.toLowerCase())) return false;
    throw new Error(`${name} must be 1 or 0, not ${shown(given)}.`);
  });
}

export function choice<const T extends string>(name: Setting<T>["name"], possible: readonly [T, ...T[]]) {
  return setting(name, possible[0], (given) => {
    const found = possible.find((each) => each === (given ?? possible[0]));
    if (found === undefined) throw new Error(`${name} must be ${possible.join(" or ")}, not ${shown(given)}.`);
    return found;
  });
}

/** A setting of one or several of these values, in any order, separated by commas; the first of them if it is not set. */
export function choices<const T extends string>(name: Setting<T>["name"], possible: readonly [T, ...T[]]) {
  return setting<readonly [T, ...T[]]>(name, possible[0], (given) => {
    const words = (given ?? possible[0]).split(",").map((word) => word.trim());
    const [first, ...others] = words.flatMap((word) => possible.filter((each) => each === word));
    if (first === undefined || others.length + 1 < words.length || new Set(words).size < words.length)
      throw new Error(`${name} must be ${possible.join(" or ")}, or several of them with commas, not ${shown(given)}.`);
    return [first, ...others];
  });
}
