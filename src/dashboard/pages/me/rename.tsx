import { Pencil } from "lucide-react";
import { useState } from "react";
import { textOf } from "../../data/text-of.ts";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { IconButton } from "../../ui/button.tsx";
import { TextField } from "../../ui/field.tsx";
import { Plain } from "../../ui/text.tsx";

/** Shows the person's name, and changes it. */
export function Rename({ name }: { readonly name: string }) {
  const [open, setOpen] = useState(false);
  return (
    <span className="inline-flex items-center gap-1">
      <Plain>{name}</Plain>
      <IconButton label="Change your name" row="me.update" onClick={() => setOpen(true)}>
        <Pencil size={14} />
      </IconButton>
      {open && (
        <ActionDialog
          row="me.update"
          title="Your name"
          submit="Save"
          input={(form) => ({ body: { name: textOf(form, "name").trim() } })}
          onClose={() => setOpen(false)}
        >
          <TextField name="name" label="Name" defaultValue={name} autoComplete="name" maxLength={100} required />
        </ActionDialog>
      )}
    </span>
  );
}
