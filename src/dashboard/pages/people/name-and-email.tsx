import { Plain } from "../../ui/text.tsx";

/** A person's name with their e-mail address, if there is one, below it. */
export function NameAndEmail({ of: { name, email } }: { readonly of: { name: string; email: string | null } }) {
  return (
    <span className="flex min-w-0 flex-col leading-4.5">
      <span className="truncate font-medium">
        <Plain>{name}</Plain>
      </span>
      {email !== null && (
        <span className="truncate text-xs text-faint">
          <Plain>{email}</Plain>
        </span>
      )}
    </span>
  );
}
