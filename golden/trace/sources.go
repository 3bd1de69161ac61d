package trace

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

// Source is one text to trace.
type Source struct {
	// ID is DOMAIN/ID.
	ID, Domain, Text string
	// Variants are the plan's, in order, where the file has them tokenised; else nil.
	Variants []Variant
	// File and Line say where it comes from.
	File string
	Line int
}

// ContentSHA256 is the hash of the text.
func (s Source) ContentSHA256() string { return hexSHA256([]byte(s.Text)) }

// Selection is what was taken of a file or folder of sources.
type Selection struct {
	Sources []Source
	// Domains are those that were selected, in order; PerDomain is the most that was
	// taken of one.
	Domains   []string
	PerDomain int
	// Reference are the hashes of two files that the script's cohort comes with; nil
	// for a folder that doesn't have them.
	ReferenceRouting, TNewsArchive *string
}

// SourceOptions selects sources.
type SourceOptions struct {
	// Domains are taken in this order; none means all.
	Domains []string
	// PerDomain is how many of each domain are taken, in the order of the file; 0
	// means all.
	PerDomain int
}

// scriptDomains is the order of the script's domains. Others come behind, by name.
var scriptDomains = []string{"human_eval", "gsm8k", "tnews", "wikitext"}

// maxSourceBytes bounds a file of sources.
const maxSourceBytes = 64 << 20

// ReadSources reads sources from a JSONL file of {id, domain, text}, or from a
// folder of DOMAIN.jsonl with {id, text}. A row may have variants: its own token
// ids under each condition of the plan. A broken row is a [*SourceError] with its
// file and line.
func ReadSources(name string, p Plan, o SourceOptions) (Selection, error) {
	dir, base := filepath.Split(filepath.Clean(name))
	if dir == "" {
		dir = "."
	}
	s, err := ReadSourcesFS(os.DirFS(dir), base, p, o)
	var bad *SourceError
	if errors.As(err, &bad) {
		bad.File = filepath.Join(dir, filepath.FromSlash(bad.File))
	}
	return s, err
}

// ReadSourcesFS is ReadSources in a file system.
func ReadSourcesFS(fsys fs.FS, name string, p Plan, o SourceOptions) (Selection, error) {
	if o.PerDomain < 0 {
		return Selection{}, &UsageError{"ReadSources", "per domain", fmt.Sprint(o.PerDomain), "0 for all, or more"}
	}
	st, err := fs.Stat(fsys, name)
	if err != nil {
		return Selection{}, fmt.Errorf("trace: %w", err)
	}
	r := sourceReader{fsys: fsys, plan: p, domains: map[string][]Source{}, seen: map[string]Source{}}
	var s Selection
	if st.IsDir() {
		err = r.folder(name, &s)
	} else {
		err = r.file(name, "")
	}
	if err != nil {
		return Selection{}, err
	}
	return s, r.choose(name, o, &s)
}

type sourceReader struct {
	fsys    fs.FS
	plan    Plan
	domains map[string][]Source
	order   []string // domains as they came
	seen    map[string]Source
}

// folder reads DOMAIN.jsonl of each domain. Other files are none of its business.
func (r *sourceReader) folder(name string, s *Selection) error {
	entries, err := fs.ReadDir(r.fsys, name)
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	for _, e := range entries {
		if domain, ok := strings.CutSuffix(e.Name(), ".jsonl"); ok && !e.IsDir() && domain != "" {
			if err := r.file(path.Join(name, e.Name()), domain); err != nil {
				return err
			}
		}
	}
	rank := func(domain string) int {
		if i := slices.Index(scriptDomains, domain); i >= 0 {
			return i
		}
		return len(scriptDomains)
	}
	slices.SortStableFunc(r.order, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	for _, f := range []struct {
		name string
		to   **string
	}{{"reference_routing.json", &s.ReferenceRouting}, {"tnews_archive.bin", &s.TNewsArchive}} {
		data, err := fs.ReadFile(r.fsys, path.Join(name, f.name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("trace: %w", err)
		}
		sum := hexSHA256(data)
		*f.to = &sum
	}
	return nil
}

// file reads a JSONL file. domain is "" where the rows say it.
func (r *sourceReader) file(name, domain string) error {
	st, err := fs.Stat(r.fsys, name)
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	if st.Size() > maxSourceBytes {
		return &SourceError{name, 0, "size", fmt.Sprintf("%d bytes", st.Size()), fmt.Sprintf("at most %d", maxSourceBytes)}
	}
	data, err := fs.ReadFile(r.fsys, name)
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	rows := 0
	for i, line := range bytes.Split(data, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		rows++
		row := sourceRow{file: name, line: i + 1}
		s, err := row.parse(line, domain, r.plan)
		if err != nil {
			return err
		}
		if first, again := r.seen[s.ID]; again {
			return row.bad("id", fmt.Sprintf("%q again, after %s:%d", s.ID, first.File, first.Line), "each id once")
		}
		r.seen[s.ID] = s
		if _, known := r.domains[s.Domain]; !known {
			r.order = append(r.order, s.Domain)
		}
		r.domains[s.Domain] = append(r.domains[s.Domain], s)
	}
	if rows == 0 {
		return &SourceError{name, 0, "rows", "none", "at least one source"}
	}
	return nil
}

// choose takes what the options select.
func (r *sourceReader) choose(name string, o SourceOptions, s *Selection) error {
	if len(r.order) == 0 {
		return &SourceError{name, 0, "folder", "no DOMAIN.jsonl", "at least one"}
	}
	s.Domains = o.Domains
	if len(s.Domains) == 0 {
		s.Domains = r.order
	}
	for i, d := range s.Domains {
		all, ok := r.domains[d]
		if !ok {
			return &SourceError{name, 0, "domain", fmt.Sprintf("%q, which isn't there", d), strings.Join(r.order, ", ")}
		}
		if slices.Contains(s.Domains[:i], d) {
			return &UsageError{"ReadSources", "domains", fmt.Sprintf("%q twice", d), "each once"}
		}
		if o.PerDomain > 0 {
			all = all[:min(len(all), o.PerDomain)]
		}
		s.PerDomain = max(s.PerDomain, len(all))
		s.Sources = append(s.Sources, all...)
	}
	if o.PerDomain > 0 {
		s.PerDomain = o.PerDomain
	}
	return nil
}

// sourceRow is a row being read.
type sourceRow struct {
	file string
	line int
}

func (r sourceRow) bad(what, got, want string) error {
	return &SourceError{r.file, r.line, what, got, want}
}

func (r sourceRow) parse(line []byte, domain string, p Plan) (Source, error) {
	s := Source{Domain: domain, File: r.file, Line: r.line}
	v, err := canonical.Parse(r.file, line)
	var syntax *canonical.SyntaxError
	if errors.As(err, &syntax) {
		return s, r.bad(fmt.Sprintf("JSON at byte %d of the line", syntax.Offset), syntax.Got, cmp.Or(syntax.Want, "JSON"))
	}
	if err != nil {
		return s, err
	}
	if v.Kind() != canonical.KindObject {
		return s, r.bad("row", v.Kind().String(), "an object")
	}
	need := []string{"id", "text"}
	if domain == "" {
		need = append(need, "domain")
	}
	for _, m := range v.Members() {
		if m.Key == "variants" {
			if s.Variants, err = r.variants(m.Value, p); err != nil {
				return s, err
			}
			continue
		}
		text, ok := m.Value.Text()
		switch {
		case m.Key == "domain" && domain != "":
			if !ok || text != domain {
				return s, r.bad("domain", m.Value.String(), fmt.Sprintf("%q, the file's", domain))
			}
			continue
		case !slices.Contains(need, m.Key):
			return s, r.bad(fmt.Sprintf("key %q", m.Key), "an unknown key", strings.Join(need, ", ")+" and variants")
		case !ok || strings.TrimSpace(text) == "" || strings.ContainsRune(text, 0) || !utf8.ValidString(text):
			return s, r.bad(m.Key, m.Value.String(), "text that isn't blank, without a NUL")
		}
		*map[string]*string{"id": &s.ID, "text": &s.Text, "domain": &s.Domain}[m.Key] = text
	}
	for _, key := range need {
		if _, ok := v.Get(key); !ok {
			return s, r.bad(fmt.Sprintf("key %q", key), "nothing", "text")
		}
	}
	if !strings.HasPrefix(s.ID, s.Domain+"/") {
		s.ID = s.Domain + "/" + s.ID
	}
	if s.Variants != nil {
		if problems, _ := p.CheckContent("", s.Variants, nil); len(problems) > 0 {
			first := problems[0]
			return s, r.bad("variants: "+place(first.At, first.What), first.Got, first.Want)
		}
	}
	return s, nil
}

// variants reads the token ids of a row, one set per condition of the plan.
func (r sourceRow) variants(v canonical.Value, p Plan) ([]Variant, error) {
	if v.Kind() != canonical.KindObject {
		return nil, r.bad("variants", v.Kind().String(), "an object")
	}
	for _, m := range v.Members() {
		if p.Condition(m.Key) < 0 {
			return nil, r.bad("variants", fmt.Sprintf("condition %q", m.Key), strings.Join(p.Names(), ", "))
		}
	}
	out := make([]Variant, len(p.Conditions))
	for i, c := range p.Conditions {
		one, ok := v.Get(c.Name)
		if !ok || one.Kind() != canonical.KindObject {
			return nil, r.bad("variants."+c.Name, "no object", "one")
		}
		tokens := -1
		fields := map[string]func(canonical.Value) bool{
			"token_ids":                func(v canonical.Value) bool { return intsOf(v, &out[i].TokenIDs) },
			"content_positions":        func(v canonical.Value) bool { return intsOf(v, &out[i].ContentPositions) },
			"boundary_crossing_tokens": func(v canonical.Value) bool { return intOf(v, &out[i].BoundaryCrossing) },
			"tokens":                   func(v canonical.Value) bool { return intOf(v, &tokens) },
		}
		for _, m := range one.Members() {
			read := fields[m.Key]
			if read == nil || !read(m.Value) {
				return nil, r.bad("variants."+c.Name+"."+m.Key, m.Value.String(), "token_ids and content_positions, lists of ids, tokens and boundary_crossing_tokens, counts")
			}
			delete(fields, m.Key)
		}
		delete(fields, "tokens")
		if len(fields) > 0 {
			return nil, r.bad("variants."+c.Name, "not all keys", "token_ids, content_positions and boundary_crossing_tokens")
		}
		if n := len(out[i].TokenIDs); tokens >= 0 && tokens != n {
			return nil, r.bad("variants."+c.Name+".tokens", fmt.Sprint(tokens), fmt.Sprintf("%d, the length of token_ids", n))
		}
	}
	return out, nil
}

func intsOf(v canonical.Value, to *[]int) bool {
	all, ok := v.Ints()
	if !ok || all == nil && v.Len() > 0 {
		return false
	}
	*to = make([]int, len(all))
	for i, n := range all {
		(*to)[i] = int(n)
	}
	return true
}

func intOf(v canonical.Value, to *int) bool {
	n, ok := v.Int()
	*to = int(n)
	return ok && n >= 0
}

func hexSHA256(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
