# The command, with its manual pages and completions.
class Quipu < Formula
  desc "Count what programs cost, by the performance counters of the CPU"
  homepage "https://github.com/quipu/quipu"
  url "https://github.com/quipu/quipu.git", tag: "v0.1.0"
  license any_of: ["MIT", "Apache-2.0"]
  head "https://github.com/quipu/quipu.git", branch: "main"

  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args(path: "tools/cli")
    system bin/"quipu", "generate", "man", buildpath/"man"
    system bin/"quipu", "generate", "completions", buildpath/"completions"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/quipu.bash" => "quipu"
    zsh_completion.install "completions/_quipu"
    fish_completion.install "completions/quipu.fish"
  end

  test do
    assert_match "page-faults", shell_output("#{bin}/quipu list page-faults")
    output = shell_output("#{bin}/quipu stat -j -e page-faults -- true 2>&1")
    assert_match "\"event\"", output
  end
end
