import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { textOf } from "../../data/text-of.ts";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { TextField } from "../../ui/field.tsx";

export function CreateProject({ onClose }: { readonly onClose: () => void }) {
  const navigate = useNavigate();
  const [slug, setSlug] = useState("");
  return (
    <ActionDialog
      row="projects.create"
      title="New project"
      submit="Create"
      input={(form) => ({ body: { slug, name: textOf(form, "name") || slug } })}
      onDone={() => {
        onClose();
        void navigate({ to: "/projects/$slug", params: { slug } });
      }}
      onClose={onClose}
    >
      <TextField
        name="slug"
        label="Slug"
        hint="In its address and in commands: lower case letters, digits, hyphens."
        required
        mono
        maxLength={40}
        value={slug}
        onChange={(event) => setSlug(event.target.value.toLowerCase().replaceAll(/[^a-z0-9-]+/g, "-"))}
      />
      <TextField
        name="name"
        label="Name"
        hint="For people. The slug, if left empty."
        maxLength={100}
        placeholder={slug}
      />
    </ActionDialog>
  );
}
