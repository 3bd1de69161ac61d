package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// documented is a command line that a document or a help text shows.
type documented struct {
	where string // file:line, or the command whose help it is in
	line  string
}

// programs begin what counts as a command line.
var programs = regexp.MustCompile(`^(\./)?(plumbline|go|make|git|python3?(\.[0-9]+)?|\.venv[a-z-]*/bin/[a-z]+|pip|cargo|gcc|cc|bazel|kubectl) `)

// assignment is a variable in front of a command, or alone.
var assignment = regexp.MustCompile(`^[A-Z_]+=('[^']*'|[^ ']*) `)

// comment ends a line of a shell.
var comment = regexp.MustCompile(`(^|\s)# .*$`)

// redirection is where a command's input comes from or its output goes.
var redirection = regexp.MustCompile(` (>>?|<) ?("[^"]*"|[^ ]+)`)

// commandOf is the command of a line, without prompt, variables and comment.
func commandOf(line string) (string, bool) {
	line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
	line = strings.TrimSpace(comment.ReplaceAllString(line, ""))
	line = redirection.ReplaceAllString(line, "")
	for assignment.MatchString(line) {
		line = assignment.ReplaceAllString(line, "")
	}
	return line, programs.MatchString(line + " ")
}

// inMarkdown are the commands of fenced blocks without a language, or of a shell's.
func inMarkdown(name, text string) []documented {
	var out []documented
	fenced, shell, held := false, false, ""
	for i, line := range strings.Split(text, "\n") {
		if lang, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
			fenced = !fenced
			shell = fenced && slices.Contains([]string{"", "sh", "bash", "console"}, lang)
			continue
		}
		if !shell {
			continue
		}
		if part, goesOn := strings.CutSuffix(line, `\`); goesOn {
			held += strings.TrimSpace(part) + " "
			continue
		}
		line, held = held+strings.TrimSpace(line), ""
		for _, part := range strings.Split(line, " && ") {
			if c, ok := commandOf(part); ok {
				out = append(out, documented{fmt.Sprintf("%s:%d", name, i+1), c})
			}
		}
	}
	return out
}

// inText are the commands of a help text or an Example: indented lines.
func inText(where, text string) []documented {
	var out []documented
	text = regexp.MustCompile(`\\\n +`).ReplaceAllString(text, "") // lines that go on
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "  ") {
			continue
		}
		if c, ok := commandOf(line); ok && !strings.HasPrefix(line, "   ") {
			out = append(out, documented{where, c})
		}
	}
	return out
}

// inDoc are the commands in the code blocks of a package comment.
func inDoc(name, text string) []documented {
	var out []documented
	for i, line := range strings.Split(text, "\n") {
		code, ok := strings.CutPrefix(line, "//\t")
		if !ok {
			continue
		}
		if c, is := commandOf(code); is {
			out = append(out, documented{fmt.Sprintf("%s:%d", name, i+1), c})
		}
	}
	return out
}

// inHelp are those of a command and all below it.
func inHelp(cmd *cobra.Command) []documented {
	out := inText(cmd.CommandPath()+" --help", cmd.Example)
	out = append(out, inText(cmd.CommandPath()+" --help", cmd.Long)...)
	for _, sub := range cmd.Commands() {
		out = append(out, inHelp(sub)...)
	}
	return out
}

// documents are the repository's Markdown files and package comments.
func documents(t *testing.T) (markdown, comments map[string]string) {
	t.Helper()
	markdown, comments = map[string]string{}, map[string]string{}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		if d.IsDir() {
			// What tests compare with is no document; the client module's README is one.
			if name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "build" || d.Name() == "testdata" && name != "conformance/testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		into := comments
		switch {
		case strings.HasSuffix(name, ".md") && name != "CHANGELOG.md":
			into = markdown
		case d.Name() == "doc.go":
		default:
			return nil
		}
		data, err := os.ReadFile(path)
		into[name] = strings.ReplaceAll(string(data), "\r\n", "\n")
		return err
	})
	require.NoError(t, err)
	return markdown, comments
}

// allDocumented are the commands of every document and help text.
func allDocumented(t *testing.T) []documented {
	t.Helper()
	markdown, comments := documents(t)
	var out []documented
	for name, text := range markdown {
		out = append(out, inMarkdown(name, text)...)
	}
	for name, text := range comments {
		out = append(out, inDoc(name, text)...)
	}
	out = append(out, inHelp(newRoot(&app{}))...)
	slices.SortFunc(out, func(x, y documented) int { return strings.Compare(x.where+x.line, y.where+y.line) })
	return out
}

// words takes a command line apart as a shell does. It knows quotes, and a backslash
// inside double ones.
func words(line string) ([]string, error) {
	var out []string
	word, begun := "", false
	quote := rune(0)
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == ' ':
			if begun {
				out, word, begun = append(out, word), "", false
			}
		default:
			word, begun = word+string(r), true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("%s: got a quote that nothing closes", line)
	}
	if begun {
		out = append(out, word)
	}
	return out, nil
}
