package engine

import (
	"bytes"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// CommandError says that a command line can't be used. Nothing was run.
type CommandError struct {
	Command string
	// Offset is the byte at fault, or -1.
	Offset int
	Why    string
}

func (e *CommandError) Error() string {
	at := ""
	if e.Offset >= 0 {
		at = fmt.Sprintf(" at byte %d", e.Offset)
	}
	return fmt.Sprintf("engine: command %q%s: %s", e.Command, at, e.Why)
}

// Placeholders of the command line of [Exec].
const (
	placeIDs        = "ids"
	placeIDsFile    = "ids_file"
	placeTextFile   = "text_file"
	placeProbeNames = "probe_names"
	placeLayers     = "layers"
	placeLogits     = "logits"
	placeProbes     = "probes"
	placeDir        = "dir"
)

// placeholder is {word}, or {{word}} for the text {word} itself.
var placeholder = regexp.MustCompile(`\{\{[a-z_]+\}\}|\{[a-z_]+\}`)

// shellOnly is what a shell would take apart or replace outside quotes. It is
// refused rather than passed on: a program that gets "|" as an argument does
// something else than its author meant.
const shellOnly = "|&;<>()$`*?[#~"

// command is a command line whose placeholders are known.
type command struct {
	line  string
	words []string
	shell bool
}

// parseCommand takes a command line apart as a shell would, or leaves it to one,
// and refuses placeholders other than those allowed.
func parseCommand(line string, shell bool, allowed ...string) (command, error) {
	c := command{line: line, shell: shell}
	var err error
	if shell {
		c.words = []string{line}
	} else if c.words, err = splitWords(line, runtime.GOOS); err != nil {
		return c, err
	}
	if len(c.words) == 0 || strings.TrimSpace(c.words[0]) == "" {
		return c, &CommandError{Command: line, Offset: -1, Why: "got no program"}
	}
	for _, w := range c.words {
		for _, p := range placeholder.FindAllString(w, -1) {
			if strings.HasPrefix(p, "{{") || slices.Contains(allowed, strings.Trim(p, "{}")) {
				continue
			}
			want := "none: the cases come on standard input"
			if len(allowed) > 0 {
				want = "{" + strings.Join(allowed, "}, {") + "}"
			}
			return c, &CommandError{Command: line, Offset: strings.Index(line, p),
				Why: fmt.Sprintf("got the placeholder %s, want %s (write {%s} for the text itself)", p, want, p)}
		}
	}
	return c, nil
}

// uses tells whether one of the placeholders is there.
func (c command) uses(names ...string) bool {
	return slices.ContainsFunc(c.words, func(w string) bool {
		return slices.ContainsFunc(placeholder.FindAllString(w, -1), func(p string) bool {
			return !strings.HasPrefix(p, "{{") && slices.Contains(names, strings.Trim(p, "{}"))
		})
	})
}

// plain are the values that a shell leaves as they are, quoted or not.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:,=@%+-]+$`)

// argv replaces the placeholders.
func (c command) argv(values map[string]string) ([]string, error) {
	words := make([]string, len(c.words))
	for i, w := range c.words {
		var err error
		words[i] = placeholder.ReplaceAllStringFunc(w, func(p string) string {
			if strings.HasPrefix(p, "{{") {
				return p[1 : len(p)-1]
			}
			name := strings.Trim(p, "{}")
			v := values[name]
			switch {
			case name == placeProbeNames && v == "": // none are wanted
			case c.shell && !plain.MatchString(v):
				err = &CommandError{Command: c.line, Offset: -1,
					Why: fmt.Sprintf("%s: got %q, which a shell would take apart: use another folder for temporary files", p, v)}
			case len(v) > maxArgument:
				why := fmt.Sprintf("%s: got %d bytes, want at most %d in one argument", p, len(v), maxArgument)
				if name == placeIDs {
					why += ": use {" + placeIDsFile + "}"
				}
				err = &CommandError{Command: c.line, Offset: -1, Why: why}
			}
			return v
		})
		if err != nil {
			return nil, err
		}
	}
	if c.shell {
		return []string{"/bin/sh", "-c", words[0]}, nil
	}
	return words, nil
}

// maxArgument is what Linux allows in one argument (MAX_ARG_STRLEN, 32 pages),
// less some room for what stands around the placeholder.
const maxArgument = 128<<10 - 4096

// splitWords splits at white space. Single quotes keep everything, double quotes
// everything but a backslash before ", \, $, ` and a newline, and a backslash
// outside quotes keeps the next byte, as in POSIX 2.2 (Quoting). For Windows, where
// paths have them, backslashes are themselves but in front of a double quote.
func splitWords(line, goos string) ([]string, error) {
	windows := goos == "windows"
	var words []string
	var word []byte
	begun := false
	bad := func(at int, format string, args ...any) ([]string, error) {
		return nil, &CommandError{Command: line, Offset: at, Why: fmt.Sprintf(format, args...)}
	}
	if at := strings.IndexByte(line, 0); at >= 0 {
		return bad(at, "got a NUL byte")
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if begun {
				words, word, begun = append(words, string(word)), nil, false
			}
		case c == '\'':
			end := strings.IndexByte(line[i+1:], '\'')
			if end < 0 {
				return bad(i, "got a single quote that nothing closes")
			}
			word, begun = append(word, line[i+1:i+1+end]...), true
			i += end + 1
		case c == '"':
			open := i
			for i++; ; i++ {
				if i >= len(line) {
					return bad(open, "got a double quote that nothing closes")
				}
				if line[i] == '"' {
					break
				}
				if windows && line[i] == '\\' {
					var kept []byte
					kept, i = backslashes(line, i)
					word = append(word, kept...)
					continue
				}
				if line[i] == '$' || line[i] == '`' {
					return bad(i, "got %q in double quotes, which needs a shell: ask for one, or use single quotes", line[i])
				}
				if line[i] == '\\' && i+1 < len(line) && strings.IndexByte("\"\\$`\n", line[i+1]) >= 0 {
					if i++; line[i] == '\n' {
						continue // a line that goes on
					}
				}
				word = append(word, line[i])
			}
			begun = true
		case c == '\\' && windows:
			var kept []byte
			kept, i = backslashes(line, i)
			word, begun = append(word, kept...), true
		case c == '\\':
			if i++; i >= len(line) {
				return bad(i-1, "got a backslash with nothing after it")
			}
			if line[i] != '\n' {
				word, begun = append(word, line[i]), true
			}
		case strings.IndexByte(shellOnly, c) >= 0 && (!begun || c != '#' && c != '~'):
			return bad(i, "got %q outside quotes, which needs a shell: ask for one, or quote it", c)
		default:
			word, begun = append(word, c), true
		}
	}
	if begun {
		words = append(words, string(word))
	}
	return words, nil
}

// backslashes reads those that begin at i as programs on Windows do: 2n in front of a
// double quote are n, and the quote has its meaning; one more, and the quote is text;
// any others are as many as they are. last is the last byte that was read.
func backslashes(line string, i int) (kept []byte, last int) {
	n := 0
	for i+n < len(line) && line[i+n] == '\\' {
		n++
	}
	if i+n == len(line) || line[i+n] != '"' {
		return bytes.Repeat([]byte{'\\'}, n), i + n - 1
	}
	kept = bytes.Repeat([]byte{'\\'}, n/2)
	if n%2 == 1 {
		return append(kept, '"'), i + n
	}
	return kept, i + n - 1
}
