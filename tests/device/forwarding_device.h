// The reference as a device of a test's own, which may refuse some requests.
#pragma once
#include "../../backends/backend.h"
#include "../../backends/reference/reference.h"

namespace weft::test {

/// Passes everything on; a test overrides the calls that it is about.
class ForwardingDevice : public backend::Device {
 public:
  const backend::DeviceInfo& info() const override { return own_->info(); }
  backend::FusedTypes fused() override { return own_->fused(); }
  backend::Allocation allocate(std::size_t bytes, backend::MemoryKind kind) override {
    return own_->allocate(bytes, kind);
  }
  void free(const backend::Allocation& allocation) override { own_->free(allocation); }
  backend::Allocation wrap(std::byte* memory, std::size_t bytes) override { return own_->wrap(memory, bytes); }
  std::shared_ptr<backend::Program> compile(const ir::Module& module, detail::Hash128 hash) override {
    return own_->compile(module, hash);
  }
  std::unique_ptr<backend::Graph> create_graph(std::unique_ptr<backend::Operations> operations) override {
    return own_->create_graph(std::move(operations));
  }
  std::unique_ptr<backend::Stream> create_stream() override { return own_->create_stream(); }
  std::unique_ptr<backend::Timestamps> create_timestamps(std::uint32_t places) override {
    return own_->create_timestamps(places);
  }
  backend::CompileStats stats() const override { return own_->stats(); }

 private:
  const std::unique_ptr<backend::Device> own_ = backend::open_reference();
};

}  // namespace weft::test
