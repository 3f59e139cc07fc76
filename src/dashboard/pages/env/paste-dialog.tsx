import { useState } from "react";
import { isSystemVariable } from "../../../contract/env.ts";
import { readEnvFile } from "../../../contract/env-file.ts";
import { useAction, useCall } from "../../data/api.ts";
import { plural } from "../../data/format.ts";
import { FormDialog } from "../../ui/action-dialog.tsx";
import { useDialog } from "../../ui/dialogs.tsx";
import { Field, TextArea } from "../../ui/field.tsx";
import { Tag, Mono } from "../../ui/text.tsx";

/** Sets all variables of a pasted .env. Shows what happens to each key before it sends anything. */
export function PasteDialog({ slug }: { readonly slug: string }) {
  const { data } = useCall("env.list", { params: { slug } });
  const known = data?.variables.map(({ key }) => key) ?? [];
  const { finish } = useDialog();
  const [text, setText] = useState("");
  const set = useAction("env.import");
  const lines = readEnvFile(text);
  const isRefused = lines.some(({ problem }) => problem !== undefined);
  const own = lines.filter(({ key }) => !isSystemVariable(key ?? ""));
  const variables = Object.fromEntries(own.map(({ key, value }) => [key ?? "", value] as const));
  const count = Object.keys(variables).length;
  const why = isRefused ? "Mend the lines that are named." : "Paste at least one KEY=value line.";
  const submit = () => set.mutateAsync({ params: { slug }, body: { variables } }).then(finish);
  return (
    <FormDialog
      title="Paste a .env"
      submit={count === 0 ? "Save" : `Save ${plural(count, "variable")}`}
      why={isRefused || count === 0 ? why : undefined}
      onSubmit={submit}
    >
      <Field label="Content of the file" hint="It is read in this browser; only the values below are sent.">
        {(ids) => (
          <TextArea
            {...ids}
            rows={8}
            value={text}
            onChange={(event) => setText(event.target.value)}
            placeholder={'STRIPE_KEY=sk_live_…\nMAIL_FROM="Shop <mail@shop.example>"'}
          />
        )}
      </Field>
      {lines.length > 0 && (
        <ul className="max-h-56 divide-y divide-line overflow-y-auto rounded-md border border-line text-sm">
          {lines.map(({ line, key, value, problem }) => (
            <li key={line} className="flex items-center justify-between gap-3 px-3 py-1.5">
              <Mono className="truncate">{key ?? `Line ${line}`}</Mono>
              {problem === undefined && !isSystemVariable(key ?? "") ? (
                <Tag>
                  {known.includes(key ?? "") ? "replaces" : "new"}
                  {value === "" && ", empty"}
                </Tag>
              ) : (
                <span className="text-xs text-bad">
                  {problem === undefined ? "is set by the platform" : `line ${line}: ${problem}`}
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
    </FormDialog>
  );
}
