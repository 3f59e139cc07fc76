/** Says which settings of a project changed, and from what to what: `port 8080 → 3000, previews feature/* → none`. */
export function settingsWords({ changed, before, after }: Readonly<Record<string, unknown>>): string {
  const names = Array.isArray(changed) ? changed.map(String) : [];
  return names
    .map((name) => {
      const title = titles[name] ?? name.replaceAll("_", " ");
      // Entries of earlier versions lack the new value.
      return isRecord(before) && isRecord(after) && name in after
        ? `${title} ${valueWords(name, before[name])} → ${valueWords(name, after[name])}`
        : title;
    })
    .join(", ");
}

const titles: Readonly<Record<string, string>> = {
  health_path: "health path",
  start_seconds: "start time",
  sleep_after_minutes: "sleeps after",
  root: "root folder",
  watch: "watched paths",
  storage: "storage folder",
  previews: "branches with previews",
  preview_variables: "variables of previews",
  preview_data: "data of previews",
  agents: "tokens in approval mode deploy to",
};

/** What null means; elsewhere, the value of berth.json or the default. */
const unset: Readonly<Record<string, string>> = {
  sleep_after_minutes: "never",
  previews: "none",
  preview_variables: "none",
};

const units: Readonly<Record<string, string>> = { start_seconds: " s", sleep_after_minutes: " min" };
const enough = { names: 3, characters: 60 };

// Details come from the database and may have any type.
function valueWords(name: string, value: unknown): string {
  if (value === null || value === undefined) return unset[name] ?? "unset";
  if (typeof value === "boolean") return value ? "on" : "off";
  if (typeof value === "number") return `${value}${units[name] ?? ""}`;
  if (name === "agents") return value === "preview" ? "previews only" : "this project";
  if (!Array.isArray(value)) return typeof value === "string" ? short(value) : "another value";
  const more = value.length - enough.names;
  const shown = value.slice(0, enough.names).map((each) => short(String(each)));
  return more > 0 ? `${shown.join(" ")} and ${more} more` : shown.join(" ");
}

function short(text: string): string {
  return text.length > enough.characters ? `${text.slice(0, enough.characters - 1)}…` : text;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
