import { Plain } from "../../ui/text.tsx";

/** A person's name with their e-mail address, if there is one, below it. */
export function NameAndEmail({ of: { name, email } }: { readonly of: { name: string; email: string | null } }) {
  return (
    <span className="flex min-w-0 flex-col leading-4.5">
      <Plain className="truncate font-medium">{name}</Plain>
      {email !== null && <Plain className="truncate text-xs text-faint">{email}</Plain>}
    </span>
  );
}
