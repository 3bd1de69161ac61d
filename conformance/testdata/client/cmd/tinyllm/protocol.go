package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"example.com/tinyllm/tinyllm"
)

// request asks for one case.
type request struct {
	Plumbline   int    `json:"plumbline"` // of the handshake alone
	Case        string `json:"case"`
	TokenIDs    []int  `json:"token_ids"`
	Text        string `json:"text"`
	DecodeSteps int    `json:"decode_steps"`
	Stop        []int  `json:"stop"`
	Out         place  `json:"out"`
}

type place struct {
	Dir    string `json:"dir"`
	Layers string `json:"layers"`
	Logits string `json:"logits"`
}

// protocol answers one line with one line, until the input ends.
func protocol(m *tinyllm.Model) error {
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var req request
		if err := json.Unmarshal(line, &req); err != nil {
			return err
		}
		reply := map[string]any{"ok": true, "case": req.Case}
		if req.Plumbline != 0 {
			s := tinyllm.Side
			reply = map[string]any{"plumbline": 1, "name": s.Name, "version": s.Version, "dtype": s.DType,
				"layers": s.Layers, "logits": s.Logits, "smoke": true}
		} else if err := answer(m, req); err != nil {
			reply = map[string]any{"error": err.Error()}
		}
		if err := out.Encode(reply); err != nil {
			return err
		}
	}
}

// answer runs a prompt, and writes its dumps and what it decoded.
func answer(m *tinyllm.Model, req request) error {
	if req.DecodeSteps == 0 {
		req.DecodeSteps = 8
	}
	out, isFake := fake(req.TokenIDs)
	if !isFake {
		var err error
		if out, err = m.Run(req.TokenIDs, req.DecodeSteps, req.Stop); err != nil {
			return err
		}
	}
	told := map[string]any{"text": req.Text, "token_ids": req.TokenIDs, "stop": req.Stop}
	if !isFake {
		told["output_ids"] = out.IDs
	}
	s := tinyllm.Side
	for name, v := range map[string]any{
		"engine.json": map[string]any{"name": s.Name, "version": s.Version, "dtype": s.DType, "layers": s.Layers, "logits": s.Logits},
		"case.json":   told,
	} {
		data, err := json.Marshal(v)
		if err == nil {
			err = os.WriteFile(filepath.Join(req.Out.Dir, name), data, 0o666)
		}
		if err != nil {
			return err
		}
	}
	if err := tinyllm.WriteLayers(req.Out.Layers, req.Text, out.Rows); err != nil {
		return err
	}
	return tinyllm.WriteLogits(req.Out.Logits, out.Logits)
}
