import { useCall, type Project } from "../../data/api.ts";
import { Section } from "../../ui/page.tsx";
import { Tag, Mono } from "../../ui/text.tsx";
import { Table, type Column } from "../../ui/table.tsx";

interface Setting {
  readonly name: string;
  readonly value: string;
  readonly setBy: "this page" | "berth.json" | "Procfile" | "default";
}

/** Fields of berth.json, each with the default that applies if neither the file nor the project sets it. */
const fields = [
  ["root", "the whole repository"],
  ["watch", "the root folder"],
  ["port", "$PORT"],
  ["health_path", "the port accepts"],
  ["build", "what the language's files say"],
  ["start", "what the language's files say"],
  ["release", "none"],
  ["processes", "none beside web"],
  ["crons", "none"],
] as const;

const ofProject: readonly string[] = ["root", "watch", "port", "health_path"] satisfies (keyof Project)[];

/** Shows the settings of the next deployment, and where each value comes from. */
export function SourceSettings({ project }: { readonly project: Project }) {
  const { slug } = project;
  const files = useCall("builds.source", { params: { slug } });
  const root = project.root ?? "";
  const useText = (name: string) => {
    const path = root === "" ? name : `${root}/${name}`;
    const exists = files.data?.files.some((file) => file.path === path) === true;
    return useCall("builds.source", { params: { slug }, query: { path } }, { enabled: exists }).data?.text ?? null;
  };
  return (
    <Section
      title="Settings of the next deployment"
      lead="A value set on this page wins over the repository's berth.json, that over its Procfile, and that over the default."
    >
      <Table
        caption="Settings in force"
        rows={settingsOf(project, fieldsOf(useText("berth.json")), processesOf(useText("Procfile")))}
        columns={columns}
        keyOf={({ name }) => name}
      />
    </Section>
  );
}

const columns: readonly Column<Setting>[] = [
  { head: "Setting", cell: ({ name }) => <Mono className="font-medium">{name}</Mono> },
  {
    head: "Value",
    grow: true,
    cell: ({ value, setBy }) =>
      setBy === "default" ? (
        <span className="text-faint max-sm:whitespace-normal">{value}</span>
      ) : (
        <Mono className="max-sm:wrap-anywhere max-sm:whitespace-normal">{value}</Mono>
      ),
  },
  {
    head: "Set by",
    end: true,
    cell: ({ setBy }) => (setBy === "default" ? <span className="text-faint">default</span> : <Tag>{setBy}</Tag>),
  },
];

type Fields = Readonly<Record<string, unknown>>;

function settingsOf(project: Project, file: Fields, procfile: Fields): Setting[] {
  const own = project as unknown as Fields;
  return fields.map(([name, standard]) => {
    if (ofProject.includes(name) && own[name] !== null) return { name, value: shown(own[name]), setBy: "this page" };
    if (Object.hasOwn(file, name)) return { name, value: shown(file[name]), setBy: "berth.json" };
    if (Object.hasOwn(procfile, name)) return { name, value: shown(procfile[name]), setBy: "Procfile" };
    return { name, value: standard, setBy: "default" };
  });
}

// The build reports what is wrong with the file, so here an invalid one counts as empty.
function fieldsOf(text: string | null): Fields {
  try {
    const value: unknown = JSON.parse((text ?? "{}").replace(/^\uFEFF/, ""));
    return typeof value === "object" && value !== null ? (value as Fields) : {};
  } catch {
    return {};
  }
}

/** Returns what a Procfile says, by the names of berth.json's fields. */
function processesOf(text: string | null): Fields {
  const lines = [...(text ?? "").matchAll(/^([\w-]+):[ \t]*(\S.*)$/gm)].map(([, type, command]) => [type, command]);
  const { web, release, ...processes } = Object.fromEntries(lines) as Readonly<Record<string, string>>;
  const others = Object.keys(processes).length > 0 && { processes };
  return { ...(web && { start: web }), ...(release && { release }), ...others };
}

/** Returns a value without the marks of JSON: `worker: node worker.js`. */
function shown(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(shown).join(value.every((each) => typeof each === "string") ? ", " : "; ");
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "";
  return Object.entries(value)
    .map(([name, each]) => `${name}: ${shown(each)}`)
    .join(", ");
}
