package plot

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"gonum.org/v1/plot/font"
)

// fontFamily is what a page calls the font of inline drawings.
const fontFamily = "Plumbline Plot"

// FontFace returns the CSS that inline drawings need, once for a page: the font as a
// data URL, reduced to printable ASCII and without hints, 20 kB in place of 550.
func FontFace() (string, error) { return fontFace() }

var fontFace = sync.OnceValues(func() (string, error) {
	face := font.DefaultCache.Lookup(inlineFont, 12)
	if face.Face == nil {
		return "", fmt.Errorf("plot: font: got none that is called %s %s", inlineFont.Typeface, inlineFont.Variant)
	}
	var raw bytes.Buffer
	if _, err := face.Face.WriteSourceTo(nil, &raw); err != nil {
		return "", fmt.Errorf("plot: font: %w", err)
	}
	small, err := reduceFont(raw.Bytes(), ' ', '~', fontFamily)
	if err != nil {
		return "", fmt.Errorf("plot: font: %w", err)
	}
	return fmt.Sprintf("@font-face{font-family:%q;src:url(data:font/ttf;base64,%s) format(\"truetype\")}\n.plot text{font-family:%q,sans-serif}\n",
		fontFamily, base64.StdEncoding.EncodeToString(small), fontFamily), nil
})

// reduceFont makes a TrueType font with the glyphs of some characters alone, after the
// OpenType specification. It must know them all.
func reduceFont(ttf []byte, first, last rune, family string) (out []byte, err error) {
	defer func() { // offsets of a broken font lead anywhere
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("got a font that can't be read: %v", r)
		}
	}()
	f, err := openFont(ttf)
	if err != nil {
		return nil, err
	}
	ids := []uint16{0} // the glyph of what is missing
	var mapped []uint16
	for r := first; r <= last; r++ {
		id := f.glyphOf(uint16(r))
		if id == 0 {
			return nil, fmt.Errorf("got no glyph for %q", r)
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		mapped = append(mapped, uint16(slices.Index(ids, id)))
	}
	var glyf, loca, hmtx []byte
	for i := 0; i < len(ids); i++ { // ids grows by the parts of glyphs
		loca = binary.BigEndian.AppendUint32(loca, uint32(len(glyf)))
		glyf = append(glyf, f.glyph(ids[i], &ids)...)
		for len(glyf)%4 != 0 {
			glyf = append(glyf, 0)
		}
		hmtx = append(hmtx, f.metrics(ids[i])...)
	}
	loca = binary.BigEndian.AppendUint32(loca, uint32(len(glyf)))

	head, hhea, maxp := slices.Clone(f.tables["head"]), slices.Clone(f.tables["hhea"]), slices.Clone(f.tables["maxp"])
	binary.BigEndian.PutUint32(head[8:], 0)  // checkSumAdjustment, which nobody checks
	binary.BigEndian.PutUint16(head[50:], 1) // long offsets
	binary.BigEndian.PutUint16(hhea[34:], uint16(len(ids)))
	binary.BigEndian.PutUint16(maxp[4:], uint16(len(ids)))
	clear(maxp[14:28]) // no instructions
	binary.BigEndian.PutUint16(maxp[14:], 1)
	post := append([]byte{0, 3, 0, 0}, make([]byte, 28)...) // without names of glyphs
	return joinTables(map[string][]byte{"OS/2": f.tables["OS/2"], "cmap": characterMap(uint16(first), mapped), "glyf": glyf, "head": head,
		"hhea": hhea, "hmtx": hmtx, "loca": loca, "maxp": maxp, "name": nameTable(family), "post": post}), nil
}

// fontTables is a TrueType font by table.
type fontTables struct {
	tables map[string][]byte
	cmap   []byte // the subtable of the basic plane, format 4
}

func openFont(ttf []byte) (*fontTables, error) {
	f := &fontTables{tables: map[string][]byte{}}
	u16, u32 := binary.BigEndian.Uint16, binary.BigEndian.Uint32
	for i := range int(u16(ttf[4:])) {
		e := ttf[12+16*i:]
		f.tables[string(e[:4])] = ttf[u32(e[8:]):][:u32(e[12:])]
	}
	for _, t := range []string{"OS/2", "cmap", "glyf", "head", "hhea", "hmtx", "loca", "maxp"} {
		if len(f.tables[t]) == 0 {
			return nil, fmt.Errorf("got no table %q", t)
		}
	}
	c := f.tables["cmap"]
	for i := range int(u16(c[2:])) {
		if s := c[u32(c[4+8*i+4:]):]; u16(c[4+8*i:]) == 3 && u16(s) == 4 {
			f.cmap = s
		}
	}
	if f.cmap == nil {
		return nil, fmt.Errorf("got no character map of format 4")
	}
	return f, nil
}

func (f *fontTables) glyphOf(r uint16) uint16 {
	u16 := binary.BigEndian.Uint16
	double := int(u16(f.cmap[6:])) // twice the number of segments
	ends := f.cmap[14:]
	starts := ends[double+2:]
	for i := 0; i < double; i += 2 {
		if r > u16(ends[i:]) {
			continue
		}
		start, delta, offset := u16(starts[i:]), u16(starts[double+i:]), int(u16(starts[2*double+i:]))
		switch {
		case r < start:
			return 0
		case offset == 0:
			return r + delta
		}
		return u16(starts[2*double+i+offset+2*int(r-start):]) + delta
	}
	return 0
}

func (f *fontTables) metrics(id uint16) []byte {
	u16 := binary.BigEndian.Uint16
	n := u16(f.tables["hhea"][34:])
	if id < n {
		return f.tables["hmtx"][4*int(id):][:4]
	}
	m := f.tables["hmtx"][4*int(n-1):]
	return append(slices.Clone(m[:2]), m[4+2*int(id-n):][:2]...)
}

// glyph returns a glyph's outline without instructions. The parts of a composite one
// are added to ids.
func (f *fontTables) glyph(id uint16, ids *[]uint16) []byte {
	u16 := binary.BigEndian.Uint16
	offset := func(i int) uint32 {
		if u16(f.tables["head"][50:]) == 0 {
			return 2 * uint32(u16(f.tables["loca"][2*i:]))
		}
		return binary.BigEndian.Uint32(f.tables["loca"][4*i:])
	}
	g := slices.Clone(f.tables["glyf"][offset(int(id)):offset(int(id)+1)])
	if len(g) == 0 {
		return nil
	}
	if contours := int16(u16(g)); contours >= 0 {
		at := 10 + 2*int(contours)
		skip := int(u16(g[at:]))
		return append(append(g[:at:at], 0, 0), g[at+2+skip:]...)
	}
	const words, scale, more, scales, matrix, instructions = 1 << 0, 1 << 3, 1 << 5, 1 << 6, 1 << 7, 1 << 8
	for at := 10; ; {
		flags, part := u16(g[at:]), u16(g[at+2:])
		if !slices.Contains(*ids, part) {
			*ids = append(*ids, part)
		}
		binary.BigEndian.PutUint16(g[at:], flags&^instructions)
		binary.BigEndian.PutUint16(g[at+2:], uint16(slices.Index(*ids, part)))
		at += 6
		for _, size := range []struct{ flag, bytes int }{{words, 2}, {scale, 2}, {scales, 4}, {matrix, 8}} {
			if int(flags)&size.flag != 0 {
				at += size.bytes
			}
		}
		if flags&more == 0 {
			return g[:at]
		}
	}
}

// characterMap is a cmap of one segment per character.
func characterMap(first uint16, ids []uint16) []byte {
	u16 := binary.BigEndian.AppendUint16
	segments := len(ids) + 1 // and the end
	search := 1
	for search*2 <= segments {
		search *= 2
	}
	log := uint16(0)
	for 1<<(log+1) <= search {
		log++
	}
	var b []byte
	for _, v := range []uint16{0, 1, 3, 1, 0, 12, 4, uint16(16 + 8*segments), 0, uint16(2 * segments), uint16(2 * search), log, uint16(2 * (segments - search))} {
		b = u16(b, v)
	}
	for i := range ids {
		b = u16(b, first+uint16(i))
	}
	b = u16(u16(b, 0xffff), 0)
	for i := range ids {
		b = u16(b, first+uint16(i))
	}
	b = u16(b, 0xffff)
	for i, id := range ids {
		b = u16(b, id-first-uint16(i))
	}
	b = u16(b, 1)
	return append(b, make([]byte, 2*segments)...)
}

// nameTable names a font, for Windows in English.
func nameTable(family string) []byte {
	u16 := binary.BigEndian.AppendUint16
	var text []byte
	for _, r := range family {
		text = u16(text, uint16(r))
	}
	names := []uint16{1, 4, 6} // family, full name, PostScript name
	b := u16(u16(u16(nil, 0), uint16(len(names))), uint16(6+12*len(names)))
	for _, n := range names {
		for _, v := range []uint16{3, 1, 0x409, n, uint16(len(text)), 0} {
			b = u16(b, v)
		}
	}
	return append(b, text...)
}

// joinTables writes a font file.
func joinTables(tables map[string][]byte) []byte {
	names := make([]string, 0, len(tables))
	for n := range tables {
		names = append(names, n)
	}
	slices.Sort(names)
	u16, u32 := binary.BigEndian.AppendUint16, binary.BigEndian.AppendUint32
	b := u16(u32(nil, 0x00010000), uint16(len(names)))
	b = append(b, 0, 128, 0, 3, 0, 32) // of ten tables: 16 times 8, log 3, and what is left
	at := 12 + 16*len(names)
	var body []byte
	for _, n := range names {
		t := tables[n]
		padded := append(slices.Clone(t), make([]byte, (4-len(t)%4)%4)...)
		sum := uint32(0)
		for i := 0; i < len(padded); i += 4 {
			sum += binary.BigEndian.Uint32(padded[i:])
		}
		b = append(b, n...)
		b = u32(u32(u32(b, sum), uint32(at+len(body))), uint32(len(t)))
		body = append(body, padded...)
	}
	return append(b, body...)
}
