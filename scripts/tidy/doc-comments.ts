// Every exported name of src outside bin says what it means: in a doc comment of its own, in that of the group it stands in, or, for a
// type, in comments on its members.

import ts from "typescript";
import type { Finding, Repository } from "./repository.ts";

/** Finds exported declarations without a doc comment. */
export function checkDocComments({ paths, read }: Repository): readonly Finding[] {
  const sources = paths.filter((path) => /^(src|scripts)\/(?!bin\/).*\.ts$/.test(path));
  return sources.flatMap((path) => {
    const file = ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest, true);
    return file.statements.filter(isExported).filter((statement) => !hasDocComment(statement, file)).map((statement) => ({
      path: `${path}:${file.getLineAndCharacterOfPosition(statement.getStart(file)).line + 1}`,
      text: `${nameOf(statement)} needs a doc comment`,
    }));
  });
}

function isExported(statement: ts.Statement): boolean {
  return ts.canHaveModifiers(statement) && (ts.getModifiers(statement) ?? []).some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
}

function hasDocComment(statement: ts.Statement, file: ts.SourceFile): boolean {
  const ranges = ts.getLeadingCommentRanges(file.text, statement.getFullStart()) ?? [];
  const isType = ts.isTypeAliasDeclaration(statement) || ts.isInterfaceDeclaration(statement);
  const hasMemberComments = isType && statement.getText(file).includes("/**");
  return ranges.some(({ pos }) => file.text.startsWith("/**", pos)) || hasMemberComments || continuesGroup(statement, file);
}

/** Declarations that follow each other without a blank line are one group, and its first one speaks for all. */
function continuesGroup(statement: ts.Statement, file: ts.SourceFile): boolean {
  const before = file.statements[file.statements.indexOf(statement) - 1];
  const hasBlankLine = /\n\s*\n/.test(file.text.slice(statement.getFullStart(), statement.getStart(file)));
  return before !== undefined && !hasBlankLine && isExported(before) && hasDocComment(before, file);
}

function nameOf(statement: ts.Statement): string {
  if (ts.isVariableStatement(statement)) return statement.declarationList.declarations.map(({ name }) => name.getText()).join(", ");
  const { name } = statement as ts.Statement & { readonly name?: ts.Identifier };
  return name?.text ?? "export";
}
