import { readFileSync } from "node:fs";
import { posix } from "node:path";
import ts from "typescript6";

/** What a source file offers and takes. Version 6 of the compiler reads it: version 7 has no stable interface yet. */
export interface SourceModule {
  readonly file: string;
  readonly text: string;
  readonly exports: readonly ExportedName[];
  readonly imports: readonly Import[];
  /** All string literals: files are also named by URL or path. */
  readonly strings: readonly string[];
}

export interface ExportedName {
  readonly name: string;
  readonly isType: boolean;
  readonly line: number;
}

export interface Import {
  /** A file of this checkout, or the specifier of a package. */
  readonly from: string;
  /** The imported names; `*` for all of them. */
  readonly names: readonly string[];
}

/** Reads one TypeScript or JavaScript file, named relative to the current folder. */
export function readModule(file: string): SourceModule {
  const text = readFileSync(file, "utf8");
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const exports = source.statements.flatMap((statement) => exportsOf(statement, source));
  const imports: Import[] = [];
  const strings: string[] = [];
  const visit = (node: ts.Node): void => {
    const found = importOf(node, file);
    if (found) imports.push(found);
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateTail(node)) strings.push(node.text);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return { file, text, exports, imports, strings };
}

function exportsOf(statement: ts.Statement, source: ts.SourceFile): ExportedName[] {
  const line = source.getLineAndCharacterOfPosition(statement.getStart(source)).line + 1;
  if (ts.isExportDeclaration(statement)) return reExports(statement, line);
  const modifiers = ts.canHaveModifiers(statement) ? ts.getModifiers(statement) : undefined;
  if (!modifiers?.some((each) => each.kind === ts.SyntaxKind.ExportKeyword)) return [];
  const isType = ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement);
  return declaredNames(statement).map((name) => ({ name, isType, line }));
}

function reExports(statement: ts.ExportDeclaration, line: number): ExportedName[] {
  const clause = statement.exportClause;
  if (!clause || !ts.isNamedExports(clause)) return [];
  return clause.elements.map((each) => ({
    name: each.name.text,
    isType: statement.isTypeOnly || each.isTypeOnly,
    line,
  }));
}

function declaredNames(statement: ts.Statement): string[] {
  if (ts.isVariableStatement(statement))
    return statement.declarationList.declarations.flatMap(({ name }) => bound(name));
  const named = statement as ts.Statement & { readonly name?: ts.Identifier };
  return named.name ? [named.name.text] : [];
}

function bound(name: ts.BindingName): string[] {
  if (ts.isIdentifier(name)) return [name.text];
  return name.elements.flatMap((each) => (ts.isBindingElement(each) ? bound(each.name) : []));
}

function importOf(node: ts.Node, file: string): Import | null {
  if (ts.isImportDeclaration(node)) return taken(node.moduleSpecifier, file, importedNames(node.importClause));
  if (ts.isExportDeclaration(node) && node.moduleSpecifier) return taken(node.moduleSpecifier, file, reExported(node));
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    return taken(node.arguments[0], file, ["*"]);
  }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument))
    return taken(node.argument.literal, file, ["*"]);
  return null;
}

function taken(specifier: ts.Node | undefined, file: string, names: readonly string[]): Import | null {
  if (!specifier || !ts.isStringLiteralLike(specifier)) return null;
  const isRelative = specifier.text.startsWith(".");
  return { from: isRelative ? posix.join(posix.dirname(file), specifier.text) : specifier.text, names };
}

function importedNames(clause: ts.ImportClause | undefined): readonly string[] {
  if (!clause) return [];
  const names = clause.name ? ["default"] : [];
  const bindings = clause.namedBindings;
  if (bindings && ts.isNamespaceImport(bindings)) return ["*"];
  return [...names, ...(bindings?.elements.map((each) => (each.propertyName ?? each.name).text) ?? [])];
}

function reExported(node: ts.ExportDeclaration): readonly string[] {
  const clause = node.exportClause;
  if (!clause || !ts.isNamedExports(clause)) return ["*"];
  return clause.elements.map((each) => (each.propertyName ?? each.name).text);
}
