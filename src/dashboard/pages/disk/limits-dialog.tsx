import { useCall, useMe } from "../../data/api.ts";
import { textOf, TextField } from "../../ui/field.tsx";
import { ActionDialog } from "../../ui/action-dialog.tsx";

const gibibyte = 1024 ** 3;

export function LimitsDialog({ slug }: { readonly slug: string }) {
  const org = useMe().organization.slug;
  const { data: disk } = useCall("disk.get", { params: { slug } });
  if (disk === undefined) return null;
  return (
    <ActionDialog
      row="disk.limits"
      title={`Disk limits of ${slug}`}
      submit="Save"
      input={(form) => ({
        params: { org, slug },
        body: Object.fromEntries(parts.map(([name]) => [`${name}_bytes`, bytesOf(textOf(form, `${name}_bytes`))])),
      })}
    >
      <p className="text-sm text-muted">In GiB. An empty field brings the installation's limit back.</p>
      {parts.map(([name, label]) => (
        <TextField
          key={name}
          name={`${name}_bytes`}
          label={label}
          type="number"
          min={0.1}
          step={0.1}
          className="max-w-32"
          defaultValue={(disk[name].limit_bytes / gibibyte).toFixed(1)}
        />
      ))}
    </ActionDialog>
  );
}

const parts = [
  ["storage", "Storage folder"],
  ["database", "Database"],
  ["images", "Images, repository and caches"],
  ["backups", "Backups on the platform's disk"],
] as const;

function bytesOf(text: string): number | null {
  return text === "" ? null : Math.round(Number(text) * gibibyte);
}
