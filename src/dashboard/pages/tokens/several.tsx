import { useCall } from "../../data/api.ts";
import { Checkbox } from "../../ui/field.tsx";
import { View } from "../../ui/page.tsx";

interface SeveralProps {
  readonly legend: string;
  readonly of: readonly string[];
  readonly chosen: readonly string[];
  readonly onChange: (chosen: readonly string[]) => void;
}

/** A group of checkboxes. */
export function Several({ legend, of: all, chosen, onChange }: SeveralProps) {
  return (
    <fieldset className="grid max-h-60 grid-cols-2 gap-x-4 gap-y-1.5 overflow-y-auto rounded-md border border-line p-3 sm:grid-cols-3">
      <legend className="sr-only">{legend}</legend>
      {all.map((name) => (
        <Checkbox
          key={name}
          label={<span className="font-mono text-xs">{name}</span>}
          checked={chosen.includes(name)}
          onChange={(event) =>
            onChange(event.target.checked ? [...chosen, name] : chosen.filter((each) => each !== name))
          }
        />
      ))}
    </fieldset>
  );
}

interface SomeProjectsProps {
  /** The projects that are chosen; null: all. */
  readonly chosen: readonly string[] | null;
  readonly onChange: (chosen: readonly string[] | null) => void;
}

/** Limits something to some of the projects. */
export function SomeProjects({ chosen, onChange }: SomeProjectsProps) {
  const projects = useCall("projects.list", {});
  return (
    <>
      <Checkbox
        label="Only some projects"
        checked={chosen !== null}
        onChange={(event) => onChange(event.target.checked ? [] : null)}
      />
      {chosen !== null && (
        <View of={projects}>
          {(data) => <Several legend="Projects" of={data.projects.map(({ slug }) => slug)} {...{ chosen, onChange }} />}
        </View>
      )}
    </>
  );
}
