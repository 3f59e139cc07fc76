import { Checkbox } from "../../ui/field.tsx";

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
